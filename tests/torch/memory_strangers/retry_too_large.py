# SPDX-License-Identifier: Apache-2.0
# label: oom-capacity asked
"""Falls back to a smaller batch after the except block, which is still too large."""
import torch
import torch.nn as nn

BATCH = 65536  #@scale


def update(model, opt, size):
    x = torch.randn(size, 2048, device="cuda")
    loss = model(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()


def main():
    model = nn.Sequential(*[nn.Sequential(nn.Linear(2048, 4096), nn.SiLU(), nn.Linear(4096, 2048)) for _ in range(10)]).cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    update(model, opt, BATCH // 64)
    failed = False
    try:
        update(model, opt, BATCH)
    except torch.OutOfMemoryError:
        failed = True
    if failed:
        torch.cuda.empty_cache()
        update(model, opt, BATCH * 3 // 4)


main()
