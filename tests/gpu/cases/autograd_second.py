# SPDX-License-Identifier: Apache-2.0
# The hidden state of the step before is part of the loss: its graph is gone.
# expect: cause=autograd-second-backward certainty=certain exit=1
# needs: torch
import torch
from torch import nn

rnn = nn.GRUCell(8, 8).cuda()
hidden = torch.zeros(4, 8, device="cuda")
for step in range(3):
    hidden = rnn(torch.randn(4, 8, device="cuda"), hidden)  # <- here
    loss = hidden.pow(2).sum()
    loss.backward()
