# SPDX-License-Identifier: Apache-2.0
"""A small correct program to run under other tools (neighbors.sh)."""
import os

import torch


def work():
    x = torch.ones(32, 32, device="cuda")
    for _ in range(5):
        x = x * 2 / 2
    return x.sum().item()


if os.environ.get("NEIGHBOUR_PROFILE"):
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        total = work()
    kernels = [e for e in profiler.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    if len(kernels) >= 10:
        print("profiler: %d kernels" % len(kernels))
else:
    total = work()
print("neighbor: sum %.1f" % total)
