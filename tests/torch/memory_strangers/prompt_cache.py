# SPDX-License-Identifier: Apache-2.0
# label: oom-fragmentation oom-growth certain=oom-fragmentation asked
"""A server with a cache of prompts' states."""
import torch

MIB = 1 << 18  # of float32
ENTRIES = 560  #@scale


class PromptCache:
    def __init__(self):
        self.entries, self.used = {}, set()

    def put(self, key, length):
        self.entries[key] = torch.empty(length * MIB, device="cuda")  #@here

    def touch(self, key):
        self.used.add(key)

    def evict_unused(self):
        self.entries = {key: value for key, value in self.entries.items() if key in self.used}


@torch.inference_mode()
def main():
    cache = PromptCache()
    for request in range(ENTRIES):
        cache.put(("system", request), 7)
        cache.put(("user", request), 9)
        cache.touch(("system", request))
    cache.evict_unused()
    document = torch.empty(MIB, 4000, device="cuda")  #@scale
    print(document.shape)


main()
