# SPDX-License-Identifier: Apache-2.0
# After a training step no library of NVIDIA's is mapped, whatever path it was asked for by: only stand-ins.
# expect-silent: exit=0
# needs: torch
import ctypes
import os
import re
import tempfile

import torch

with tempfile.TemporaryDirectory() as folder:
    for name in ("libcublas.so.12", "libcudnn.so.9", "libcuda.so.1", "libnvrtc.so.13"):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="ascii") as other:
            other.write("not a library\n")
        ctypes.CDLL(path)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Flatten(), torch.nn.Linear(8 * 14 * 14, 10)).cuda()
model(torch.randn(4, 3, 16, 16, device="cuda")).sum().backward()
torch.linalg.svd(torch.randn(8, 8, device="cuda"))
torch.fft.fft(torch.randn(64, device="cuda"))
torch.cuda.synchronize()
names = re.compile(r"/lib(cu(da|dart|blas|blasLt|dnn|fft|rand|solver|sparse|sparseLt|pti|file)|nv\w+|nccl)\b[^/]*$")
with open("/proc/self/maps", encoding="utf-8") as maps:
    paths = {line.split(None, 5)[5].strip() for line in maps if line.count("/")}
seen = {path for path in paths if names.search(path)}
ours = os.path.realpath(os.environ["CUWHY_SIM_LIBS"])
assert len(seen) > 8, seen
assert all(os.path.dirname(os.path.realpath(path)) == ours for path in seen), seen
