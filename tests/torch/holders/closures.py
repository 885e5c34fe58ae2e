# SPDX-License-Identifier: Apache-2.0
# keeps: steps[*] → closure of replay(): kept
# also: steps[*] → closure of replay(): kept[*]
import torch


def big(n=1):
    return torch.empty(n * (256 << 20), dtype=torch.uint8, device="cuda")


def make_replay(kept):
    def replay():
        return sum(t.numel() for t in kept)
    return replay


def main():
    steps = []
    while True:
        steps.append(make_replay([big(), big()]))


main()
