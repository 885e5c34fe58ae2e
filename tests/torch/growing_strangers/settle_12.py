# SPDX-License-Identifier: Apache-2.0
# settles: gradient accumulation with micro-batches of several sizes, the largest comes in step 9, after about step 9
import torch
import torch.nn as nn
import torch.nn.functional as F

# (micro-batch size, micro-batches per optimizer step)
PLAN = [(16, 4), (16, 4), (32, 3), (32, 3), (48, 2), (48, 2), (64, 2), (64, 2), (96, 2)]


class TextCNN(nn.Module):
    def __init__(self, vocab=10000, dim=256, classes=8):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.convs = nn.ModuleList([nn.Conv1d(dim, 192, k, padding=k // 2) for k in (3, 5, 7)])
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(192 * 3, classes)

    def forward(self, ids):
        h = self.emb(ids).transpose(1, 2)
        pooled = [F.relu(c(h)).amax(-1) for c in self.convs]
        return self.fc(self.drop(torch.cat(pooled, 1)))


def micro(size, count):
    for _ in range(count):
        yield torch.randint(0, 10000, (size, 1024), device="cuda"), torch.randint(0, 8, (size,), device="cuda")


def main():
    step = 0
    try:
        model = TextCNN().to("cuda")
        opt = torch.optim.Adagrad(model.parameters(), lr=0.01)
        while True:
            size, count = PLAN[step % len(PLAN)]
            step += 1
            opt.zero_grad(set_to_none=False)
            total = torch.zeros((), device="cuda")
            for ids, y in micro(size, count):
                loss = F.cross_entropy(model(ids), y) / count
                loss.backward()
                total += loss.detach()
            opt.step()
            if step % 30 == 0:
                print(f"{step}: {total.item():.4f}")
    except torch.OutOfMemoryError:
        print(f"failed in step {step}")


if __name__ == "__main__":
    main()
