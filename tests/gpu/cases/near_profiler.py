# SPDX-License-Identifier: Apache-2.0
# torch.profiler around a working loop sees its kernels, and cuwhy has nothing to say.
# expect-silent: exit=0
# needs: torch cupti
import torch
from torch.profiler import ProfilerActivity, profile

x = torch.ones(512, 512, device="cuda")
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
    for _ in range(20):
        x = (x @ x).clamp(0, 1)
    torch.cuda.synchronize()
kernels = [e for e in profiler.events() if e.device_type == torch.autograd.DeviceType.CUDA]
assert len(kernels) >= 40, len(kernels)
assert any("aten::mm" == e.key for e in profiler.key_averages())
print("profiler saw the kernels")
