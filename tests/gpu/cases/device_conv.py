# SPDX-License-Identifier: Apache-2.0
# A convolution says it in other words: "Input type … and weight type … should be the same".
# expect: cause=tensor-device-mismatch certainty=certain,likely exit=1
# needs: torch
import torch
import torch.nn as nn

model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())
images = torch.ones(2, 3, 8, 8, device="cuda")
model(images)  # <- here
