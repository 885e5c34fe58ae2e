# SPDX-License-Identifier: Apache-2.0
# The run-time compiler is asked for an architecture that it does not know.
# expect: cause=nvrtc-arch-unsupported certainty=certain,likely exit=1
# needs: torch nvcc
import torch

source = 'extern "C" __global__ void touch(float *data) { data[0] = 1; }'
torch.zeros(1, device="cuda")
torch.cuda._compile_kernel(source, "touch", compute_capability="999")  # <- here
