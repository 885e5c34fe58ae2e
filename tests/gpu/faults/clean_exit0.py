# SPDX-License-Identifier: Apache-2.0
# Nothing is wrong: training, a graph, a side stream.
# expect-silent: exit=0
# needs: torch
import torch

model = torch.nn.Linear(32, 4).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    optimizer.zero_grad()
    x = torch.ones(16, 32, device="cuda")
    loss = torch.nn.functional.cross_entropy(model(x), torch.arange(16, device="cuda") % 4)
    loss.backward()
    optimizer.step()
with torch.cuda.stream(torch.cuda.Stream()):
    total = (torch.arange(100, device="cuda") * 2).sum()
torch.cuda.synchronize()
print(total.item(), loss.isfinite().item())
