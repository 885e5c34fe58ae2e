# SPDX-License-Identifier: Apache-2.0
# keeps: scratch.buffers
# gone: the threads end before the exception does, and their variables with them
import concurrent.futures
import threading

import torch


def big(n=1):
    return torch.empty(n * (256 << 20), dtype=torch.uint8, device="cuda")


scratch = threading.local()


def work(n):
    if not hasattr(scratch, "buffers"):
        scratch.buffers = []
    scratch.buffers.append(big())
    return n


def main():
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        n = 0
        while True:
            pool.submit(work, n).result()
            n += 1


main()
