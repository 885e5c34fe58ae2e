# SPDX-License-Identifier: Apache-2.0
# Weights, a cache and a batch that do not fit on the card together; each is there once.
# expect: cause=oom-capacity exit=1
# needs: torch
# alone
import torch

total = torch.cuda.get_device_properties(0).total_memory
kind = {"dtype": torch.uint8, "device": "cuda"}

weights = torch.empty(int(0.35 * total), **kind)
cache = torch.empty(int(0.4 * total), **kind)
batch = torch.empty(int(0.3 * total), **kind)  # <- here
