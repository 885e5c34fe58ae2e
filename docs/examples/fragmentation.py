# SPDX-License-Identifier: Apache-2.0
# A server keeps a cache for each of its clients. Every second client leaves: half of the card is free, but fragmented.
# expect: cause=oom-fragmentation certainty=certain,likely exit=1 here=21 culprit=14
# needs: torch
# alone
import torch

MIB = 1 << 20


def serve(clients):
    caches = {}
    for client in range(clients):
        caches[client] = torch.zeros(9 * MIB, dtype=torch.uint8, device="cuda")
    for client in range(0, clients, 2):
        del caches[client]
    return caches


def prefill(gib):
    return torch.empty(gib << 30, dtype=torch.uint8, device="cuda")


free, total = torch.cuda.mem_get_info()
caches = serve(int(free * 0.97) // (10 * MIB))
print(prefill(8).shape)
