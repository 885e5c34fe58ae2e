# SPDX-License-Identifier: Apache-2.0
# Code built for another architecture only (sm_80 machine code, no PTX) through PyTorch's loader.
# expect: cause=extension-arch-missing certainty=certain,likely exit=1 code=209
# needs: torch nvcc
import torch


def build(arch):
    source = 'extern "C" __global__ void touch(float *data) { data[0] = 1; }'
    return torch.cuda._compile_kernel(source, "touch", compute_capability=arch)  # <- here


torch.zeros(1, device="cuda")
major, minor = torch.cuda.get_device_capability()
build("80" if major != 8 else "90")
