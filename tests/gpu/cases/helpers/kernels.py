# SPDX-License-Identifier: Apache-2.0
"""Kernels in a form that needs no compiler on the machine: PTX that the driver turns into code."""
import torch
from torch.cuda._utils import _cuda_load_module

PTX = """
.version %s
.target sm_80
.address_size 64
.visible .entry touch(.param .u64 data, .param .u32 count)
{
	ret;
}
"""


def load(version="7.0"):
    torch.zeros(1, device="cuda")
    return _cuda_load_module(PTX % version, ["touch"])["touch"]
