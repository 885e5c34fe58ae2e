# SPDX-License-Identifier: Apache-2.0
# leak: predictions of every batch kept in a list (never cleared), about 32 MiB per step
import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda"
torch.manual_seed(0)

model = nn.Sequential(
    nn.Linear(512, 1024),
    nn.ReLU(),
    nn.Dropout(0.1),
    nn.Linear(1024, 2048),
).to(device)
opt = torch.optim.SGD(model.parameters(), lr=0.05)

all_preds = []
step = 0
try:
    while True:
        step += 1
        x = torch.randn(4096, 512, device=device)
        y = torch.randint(0, 2048, (4096,), device=device)
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        all_preds.append(logits)  # for the report at the end
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}")
except torch.OutOfMemoryError:
    print(f"failed in step {step}")
