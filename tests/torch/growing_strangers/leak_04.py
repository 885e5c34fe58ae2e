# SPDX-License-Identifier: Apache-2.0
# leak: backward(retain_graph=True) and the losses kept, whole graphs stay, about 75 MiB per step
import torch
import torch.nn as nn

VOCAB, D, SEQ, BATCH = 5000, 256, 128, 16


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, D)
        self.pos = nn.Parameter(torch.zeros(1, SEQ, D))
        layer = nn.TransformerEncoderLayer(D, 4, dim_feedforward=1024, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(D, 4)

    def forward(self, ids):
        h = self.enc(self.tok(ids) + self.pos)
        return self.out(h.mean(1))


state = {"step": 0}
losses = []


def train():
    model = Classifier().to("cuda")
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 50))
    crit = nn.CrossEntropyLoss()
    while True:
        state["step"] += 1
        ids = torch.randint(VOCAB, (BATCH, SEQ), device="cuda")
        lab = torch.randint(4, (BATCH,), device="cuda")
        opt.zero_grad()
        loss = crit(model(ids), lab)
        loss.backward(retain_graph=True)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        losses.append(loss)
        if state["step"] % 10 == 0:
            recent = losses[-10:]
            print(state["step"], sum(l.item() for l in recent) / len(recent))


if __name__ == "__main__":
    try:
        train()
    except torch.OutOfMemoryError:
        print(f"failed in step {state['step']}")
