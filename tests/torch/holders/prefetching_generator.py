# SPDX-License-Identifier: Apache-2.0
# keeps: batches → generator prefetch(): ahead
# keeps: loader → generator prefetch(): ahead
# keeps: stream → generator prefetch(): ahead
# keeps: batches → generator transformed(): stream → generator prefetch(): ahead
# also: ahead
import torch


def big(n=1):
    return torch.empty(n * (256 << 20), dtype=torch.uint8, device="cuda")


def prefetch(n):
    ahead = []
    while True:
        ahead.append(big())
        yield len(ahead)


def transformed(stream):
    for item in stream:
        yield item * 2


def main():
    batches = transformed(prefetch(4))
    for count in batches:
        assert count


main()
