# SPDX-License-Identifier: Apache-2.0
# label: oom-growth
"""A thread uploads batches into a queue without a limit, faster than they are used."""
import concurrent.futures
import queue
import time

import torch
import torch.nn as nn

BATCH = 128  #@scale
ready = queue.Queue()


def upload(count):
    for i in range(count):
        images = torch.zeros(BATCH, 3, 160, 160)
        ready.put((images.to("cuda"), i))  #@here


def train():
    net = nn.Sequential(nn.Conv2d(3, 16, 5, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 10)).cuda()
    opt = torch.optim.Adam(net.parameters())
    pool = concurrent.futures.ThreadPoolExecutor(1)
    uploads = pool.submit(upload, 5000)
    steps = 0
    while not uploads.done():
        if ready.qsize() < 8 * steps + 8:      # the network is slow
            time.sleep(0.001)
            continue
        steps += 1
        images, _ = ready.get()
        loss = net(images).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    uploads.result()


train()
