# SPDX-License-Identifier: Apache-2.0
# A library runs backward over what the program's function returns; the second function asks for more than fits.
# expect: cause=oom-capacity certainty=certain,likely exit=1
# needs: torch
# alone
import os
import sys

import torch
import torch.nn as nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "site-packages"))
from looper import Looper  # noqa: E402

model = nn.Sequential(*(nn.Sequential(nn.Linear(4096, 4096), nn.GELU()) for _ in range(8))).cuda()
looper = Looper(torch.optim.SGD(model.parameters(), lr=1e-4))


def of_few():
    return model(torch.randn(8192, 4096, device="cuda")).mean()


def of_many():
    return model(torch.randn(1 << 20, 4096, device="cuda")).mean()  # <- here


for _ in range(3):
    looper.advance(of_few)
looper.advance(of_many)
