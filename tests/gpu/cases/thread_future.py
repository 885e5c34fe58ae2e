# SPDX-License-Identifier: Apache-2.0
# A worker thread fails and the main thread raises its exception again.
# expect: cause=launch-config-block-limit certainty=certain,likely exit=1 function=work
# needs: torch
from concurrent.futures import ThreadPoolExecutor

import torch
from helpers.kernels import load


def work(kernel, threads):
    x = torch.zeros(16, device="cuda")
    kernel(grid=(1, 1, 1), block=(threads, 1, 1), args=[x, 16])  # <- here
    return threads


touch = load()
with ThreadPoolExecutor(4) as pool:
    for done in [pool.submit(work, touch, n) for n in (32, 1024, 4096)]:
        print(done.result())
