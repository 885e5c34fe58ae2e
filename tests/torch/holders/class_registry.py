# SPDX-License-Identifier: Apache-2.0
# keeps: Block.instances[*].scale
# keeps: Block.instances[*]
import torch


def big(n=1):
    return torch.empty(n * (256 << 20), dtype=torch.uint8, device="cuda")


class Block:
    instances = []

    def __init__(self):
        self.scale = big()
        Block.instances.append(self)


def build():
    return Block().scale.shape


while True:
    build()
