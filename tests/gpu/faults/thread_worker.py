# SPDX-License-Identifier: Apache-2.0
# A thread launches it and is gone before anybody notices.
# expect: cause=index-out-of-range certainty=certain,likely exit=1 code=710 function=work
# needs: torch
import threading

import torch

table = torch.randn(64, 16, device="cuda")
results = []


def work(index):
    results.append(table[index])  # <- here


def start(index):
    thread = threading.Thread(target=work, args=(index,))
    thread.start()
    thread.join()


start(torch.arange(10, device="cuda"))
print(results[0].shape)
start(torch.arange(60, 70, device="cuda"))
x = torch.ones(100, device="cuda")
for _ in range(20):
    x = x + 1
torch.cuda.synchronize()
print(x.sum().item())
