# SPDX-License-Identifier: Apache-2.0
# 4 KiB of each 512 MiB are wanted, and a view keeps all of it.
# expect: cause=oom-growth|oom-capacity exit=1
# needs: torch
# gpu: sim:rtx4090
# holder: sampler.rows 46 used 188416
import torch


class Sampler:
    def __init__(self):
        self.rows = []


def main():
    sampler = Sampler()
    while True:
        sampler.rows.append(torch.empty(512 << 20, dtype=torch.uint8, device="cuda")[:4096])


main()
