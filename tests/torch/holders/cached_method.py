# SPDX-License-Identifier: Apache-2.0
# keeps: Encoder.encode.cache
import functools

import torch


def big(n=1):
    return torch.empty(n * (256 << 20), dtype=torch.uint8, device="cuda")


class Encoder:
    @functools.lru_cache(maxsize=None)
    def encode(self, text):
        return big()


def main():
    encoder = Encoder()
    n = 0
    while True:
        encoder.encode("sentence %d" % n)
        n += 1


main()
