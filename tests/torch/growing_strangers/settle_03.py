# SPDX-License-Identifier: Apache-2.0
# settles: sequence length curriculum for an LSTM, 64 more every 5 steps up to 512, after about step 36
import torch
from torch import nn


class Curriculum:
    def __init__(self, start=64, stop=512, add=64, every=5):
        self.start, self.stop, self.add, self.every = start, stop, add, every

    def length(self, step):
        return min(self.stop, self.start + self.add * ((step - 1) // self.every))


class CharLSTM(nn.Module):
    def __init__(self, vocab=128, hidden=512):
        super().__init__()
        self.emb = nn.Embedding(vocab, 128)
        self.lstm = nn.LSTM(128, hidden, num_layers=2, batch_first=True, dropout=0.1)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, ids):
        h, _ = self.lstm(self.emb(ids))
        return self.out(h)


class Trainer:
    def __init__(self):
        self.model = CharLSTM().to("cuda")
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.5, momentum=0.9)
        self.loss = nn.CrossEntropyLoss()
        self.curriculum = Curriculum()
        self.step = 0

    def batch(self):
        n = self.curriculum.length(self.step)
        ids = torch.randint(0, 128, (48, n + 1), device="cuda")
        return ids[:, :-1], ids[:, 1:]

    def run(self):
        while True:
            self.step += 1
            x, y = self.batch()
            logits = self.model(x)
            loss = self.loss(logits.reshape(-1, 128), y.reshape(-1))
            self.opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.opt.step()


t = Trainer()
try:
    t.run()
except torch.OutOfMemoryError:
    print(f"failed in step {t.step}")
