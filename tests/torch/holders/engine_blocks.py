# SPDX-License-Identifier: Apache-2.0
# keeps: engine.workers[0].cache.gpu_cache
# keeps: engine.workers[0].cache.gpu_cache[*]
# keeps: engine.workers[0].cache.gpu_cache[*][0]
# keeps: engine.workers[0].cache.gpu_cache[*][1]
import torch


def big(n=1):
    return torch.empty(n * (256 << 20), dtype=torch.uint8, device="cuda")


class CacheEngine:
    def __init__(self, layers, blocks):
        self.gpu_cache = [(big(), big()) for _ in range(layers)]
        self.free = list(range(blocks))


class Worker:
    def __init__(self):
        self.model = torch.nn.Linear(256, 256).cuda()
        self.cache = CacheEngine(40, 1024)


class Engine:
    def __init__(self):
        self.workers = [Worker()]
        self.block_tables = {}

    def step(self):
        self.block_tables[len(self.block_tables)] = self.workers[0].cache.free.pop()
        return big(16)


def main():
    engine = Engine()
    while True:
        engine.step()
        hold.append(engine.step())


hold = []
main()
