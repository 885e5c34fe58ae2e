# SPDX-License-Identifier: Apache-2.0
# PTX of a version that no driver knows yet.
# expect: cause=ptx-newer-than-driver certainty=certain,likely exit=1 code=222
# needs: torch
import torch
from torch.cuda._utils import _cuda_load_module
from helpers.kernels import PTX

torch.zeros(1, device="cuda")
_cuda_load_module(PTX % "99.0", ["touch"])  # <- here
