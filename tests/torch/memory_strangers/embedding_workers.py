# SPDX-License-Identifier: Apache-2.0
# label: oom-other-process asked
"""Embeds in worker processes while the main process trains."""
import multiprocessing

import torch
import torch.nn as nn

WORKERS = 2
TABLE = 1100000  #@scale


def worker(jobs, ready):
    encoder = nn.EmbeddingBag(TABLE, 1024, device="cuda")
    ready.put(sum(p.numel() for p in encoder.parameters()))
    for job in iter(jobs.get, None):
        encoder(job.cuda())


def main():
    context = multiprocessing.get_context("spawn")
    jobs, ready = context.Queue(), context.Queue()
    pool = [context.Process(target=worker, args=(jobs, ready), daemon=True) for _ in range(WORKERS)]  #@here
    for process in pool:
        process.start()  #@here
    for _ in pool:
        print("worker has", ready.get(), "weights")
    model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    rows = 131072  #@scale
    for _ in range(5):
        x = torch.randn(rows, 1024, device="cuda")
        loss = (model(x) - x).pow(2).mean()  #@forward
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
