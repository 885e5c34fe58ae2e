# SPDX-License-Identifier: Apache-2.0
# keeps: agent.memory.items[*].state
import collections
import random

import torch


def big(n=1):
    return torch.empty(n * (256 << 20), dtype=torch.uint8, device="cuda")


Transition = collections.namedtuple("Transition", "state action reward")


class Memory:
    def __init__(self, size):
        self.items = collections.deque(maxlen=size)

    def push(self, *of):
        self.items.append(Transition(*of))


class Agent:
    def __init__(self):
        self.memory = Memory(100000)

    def play(self):
        while True:
            self.memory.push(big(), random.randrange(4), 0.5)


def main():
    agent = Agent()
    agent.play()


main()
