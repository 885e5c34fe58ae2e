# SPDX-License-Identifier: Apache-2.0
# What does not fit is of another size, on the same lines: only a try shows that a smaller batch does not help (remedies.py).
import argparse, torch, torch.nn as nn, torch.nn.functional as F

class Res(nn.Module):
    def __init__(self, cin, cout, t=256):
        super().__init__()
        self.n1, self.c1 = nn.GroupNorm(8, cin), nn.Conv2d(cin, cout, 3, padding=1)
        self.t = nn.Linear(t, cout)
        self.n2, self.c2 = nn.GroupNorm(8, cout), nn.Conv2d(cout, cout, 3, padding=1)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()
    def forward(self, x, t):
        h = self.c1(F.silu(self.n1(x))) + self.t(t)[:, :, None, None]
        return self.skip(x) + self.c2(F.silu(self.n2(h)))

class UNet(nn.Module):
    def __init__(self, c=64):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(1, 256), nn.SiLU(), nn.Linear(256, 256))
        self.inp = nn.Conv2d(3, c, 3, padding=1)
        self.down = nn.ModuleList([Res(c, c), Res(c, 2 * c), Res(2 * c, 4 * c)])
        self.mid = nn.ModuleList([Res(4 * c, 4 * c), Res(4 * c, 4 * c)])
        self.up = nn.ModuleList([Res(8 * c, 2 * c), Res(4 * c, c), Res(2 * c, c)])
        self.outp = nn.Conv2d(c, 3, 3, padding=1)
    def forward(self, x, t):
        t = self.time(t[:, None])
        h, skips = self.inp(x), []
        for block in self.down:
            h = block(h, t)
            skips.append(h)
            h = F.avg_pool2d(h, 2)
        for block in self.mid:
            h = block(h, t)
        for block in self.up:
            h = F.interpolate(h, scale_factor=2)
            h = block(torch.cat([h, skips.pop()], 1), t)
        return self.outp(h)

p = argparse.ArgumentParser()
p.add_argument("--batch-size", type=int, default=48)
a = p.parse_args()
net = UNet().cuda()
ema = UNet().cuda()
opt = torch.optim.Adam(net.parameters(), 1e-4)
for step in range(15):
    x = torch.randn(a.batch_size, 3, 96, 96, device="cuda")
    t = torch.rand(a.batch_size, device="cuda")
    noise = torch.randn_like(x)
    xt = x * (1 - t)[:, None, None, None] + noise * t[:, None, None, None]
    loss = F.mse_loss(net(xt, t), noise)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for pe, pn in zip(ema.parameters(), net.parameters()):
            pe.lerp_(pn, 0.01)
    if step % 5 == 4:
        sample = torch.randn(16, 3, 96, 96, device="cuda")
        for s in range(4):
            sample = sample - 0.25 * ema(sample, torch.full((16,), 1 - s / 4, device="cuda"))
        print("step", step, "sample", tuple(sample.shape))
