# SPDX-License-Identifier: Apache-2.0
# label: capacity
"""Speech frames to phonemes, cell by cell; later epochs have longer utterances."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class Listener(nn.Module):
    def __init__(self, d, layers):
        super().__init__()
        self.inp = nn.Linear(80, d)
        self.cells = nn.ModuleList(nn.LSTMCell(d, d) for _ in range(layers))
        self.out = nn.Linear(d, 48)

    def unroll(self, frames):
        state = [(frames.new_zeros(len(frames), self.inp.out_features),) * 2 for _ in self.cells]
        outs = []
        for t in range(frames.shape[1]):
            x = self.inp(frames[:, t])
            for i, cell in enumerate(self.cells):
                state[i] = cell(x, state[i])
                x = state[i][0]
            outs.append(self.out(x))  #@here
        return torch.stack(outs, 1)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    a = p.parse_args()
    net = Listener(512, 3 if a.variant == "a" else 4).cuda()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch, length in enumerate((20, 40, 80, 160, 320)):
        for step in range(3):
            x = torch.randn(int(512 * a.scale), length, 80, device="cuda")
            y = torch.randint(0, 48, (len(x), length), device="cuda")
            loss = F.cross_entropy(net.unroll(x).flatten(0, 1), y.flatten())
            opt.zero_grad()
            loss.backward()
            opt.step()
            print(epoch, step, loss.item(), flush=True)


main()
