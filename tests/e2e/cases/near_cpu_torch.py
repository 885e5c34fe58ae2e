# SPDX-License-Identifier: Apache-2.0
# The same PyTorch in a program that does not need it, and dies of something else.
# expect-silent: exit=1
from types import SimpleNamespace

import cudrv

torch = SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: False))

cudrv.init()
device = "cuda" if torch.cuda.is_available() else "cpu"
print(device, {"lr": 1}["momentum"])
