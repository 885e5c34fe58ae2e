# SPDX-License-Identifier: Apache-2.0
# Another library uses the GPU; the PyTorch next to it was built without CUDA, and never calls the driver.
# expect: cause=cpu-only-build certainty=possible exit=1
from types import SimpleNamespace

import cudrv

torch = SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: False))

cudrv.init()
cudrv.launch(cudrv.kernel("nop"), (1,), (32,))
cudrv.synchronize()
assert torch.cuda.is_available(), "this program needs a GPU"  # <- here
