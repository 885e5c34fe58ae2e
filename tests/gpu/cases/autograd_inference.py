# SPDX-License-Identifier: Apache-2.0
# A tensor of inference mode goes into a layer that is trained.
# expect: cause=autograd-inplace-refused certainty=certain exit=1
# needs: torch
import torch

model = torch.nn.Linear(8, 8).cuda()
with torch.inference_mode():
    features = torch.randn(4, 8, device="cuda") * 2
model(features).sum().backward()  # <- here
