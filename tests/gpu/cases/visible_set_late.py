# SPDX-License-Identifier: Apache-2.0
# The variable is put right only after CUDA was first asked.
# expect: cause=visible-devices-set-late certainty=certain,likely exit=1
# needs: torch
# env: CUDA_VISIBLE_DEVICES=
import os

import torch

print("available at first:", torch.cuda.is_available())
os.environ["CUDA_VISIBLE_DEVICES"] = "0"
x = torch.zeros(3, device="cuda")  # <- here
print(x.sum())
