# SPDX-License-Identifier: Apache-2.0
# A GPT-2 with random weights and far too long a batch.
# expect: cause=oom-capacity certainty=certain,likely exit=1
# needs: torch transformers
# alone
import torch
import transformers

model = transformers.GPT2LMHeadModel(transformers.GPT2Config()).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)


def train(batch):
    ids = torch.randint(50257, (batch, 1024), device="cuda")
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


for batch in (4, 8, 256):
    train(batch)
