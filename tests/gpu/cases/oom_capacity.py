# SPDX-License-Identifier: Apache-2.0
# A list of tensors grows until the card is full of live ones.
# expect: cause=oom-capacity exit=1
# needs: torch
# alone
import torch

GIB = 1 << 30


def keep(pile, gib):
    pile.append(torch.empty(gib * GIB, dtype=torch.uint8, device="cuda"))  # <- here


pile = []
while True:
    keep(pile, 10)
