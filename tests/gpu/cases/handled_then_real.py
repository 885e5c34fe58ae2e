# SPDX-License-Identifier: Apache-2.0
# A handled error first, then a different one that ends the program.
# expect: cause=oom-request-too-large exit=1
# expect-note: cause=device-ordinal-out-of-range
# needs: torch
import torch


def pick(index):
    try:
        torch.cuda.set_device(index)  # <- note
    except RuntimeError:
        return "cuda:0"
    return "cuda:%d" % index


device = pick(60)
x = torch.empty(1 << 42, device=device)  # <- here
