# SPDX-License-Identifier: Apache-2.0
# Two devices are asked for after CUDA had already started with one.
# expect: cause=visible-devices-set-late,device-ordinal-out-of-range exit=1
# needs: torch
# env: CUDA_VISIBLE_DEVICES=0
import os

import torch

torch.zeros(1, device="cuda")
os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"
x = torch.zeros(3, device="cuda:17")  # <- here
