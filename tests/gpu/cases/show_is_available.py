# SPDX-License-Identifier: Apache-2.0
# Versions and device names printed: nothing to say.
# expect-silent: exit=0
# needs: torch
# same-output
import torch

print("torch", torch.__version__, "cuda", torch.version.cuda)
print("cudnn", torch.backends.cudnn.version())
print("available", torch.cuda.is_available(), "count", torch.cuda.device_count())
for index in range(torch.cuda.device_count()):
    print(index, torch.cuda.get_device_name(index), torch.cuda.get_device_capability(index))
