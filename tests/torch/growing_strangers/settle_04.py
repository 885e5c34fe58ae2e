# SPDX-License-Identifier: Apache-2.0
# settles: image size grows 96, 128, 160, 192, 224 (every 8 steps), fp16 with GradScaler, after about step 33
import torch
import torch.nn as nn
import torch.nn.functional as F

SIZES = [96, 128, 160, 192, 224]


class Residual(nn.Module):
    def __init__(self, i, o, stride=1):
        super().__init__()
        self.c1 = nn.Conv2d(i, o, 3, stride, 1, bias=False)
        self.b1 = nn.BatchNorm2d(o)
        self.c2 = nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.b2 = nn.BatchNorm2d(o)
        self.skip = nn.Conv2d(i, o, 1, stride, bias=False) if (i != o or stride != 1) else nn.Identity()

    def forward(self, x):
        h = F.relu(self.b1(self.c1(x)), inplace=True)
        return F.relu(self.b2(self.c2(h)) + self.skip(x))


def resnet():
    return nn.Sequential(
        nn.Conv2d(3, 32, 5, 2, 2), Residual(32, 32), Residual(32, 64, 2), Residual(64, 128, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 50),
    )


def images(start=0):
    n = start
    while True:
        size = SIZES[min(n // 8, len(SIZES) - 1)]
        yield torch.rand(48, 3, size, size, device="cuda"), torch.randint(0, 50, (48,), device="cuda")
        n += 1


step = 0
try:
    model = resnet().to("cuda", memory_format=torch.channels_last)
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    scaler = torch.amp.GradScaler("cuda")
    stream = images()
    while True:
        step += 1
        x, y = next(stream)
        x = x.contiguous(memory_format=torch.channels_last)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = F.cross_entropy(model(x), y)
        opt.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        scaler.step(opt)
        scaler.update()
except torch.OutOfMemoryError:
    print(f"failed in step {step}")
