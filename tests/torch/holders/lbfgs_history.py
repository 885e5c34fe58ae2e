# SPDX-License-Identifier: Apache-2.0
# keeps: opt.state[*]['old_dirs']
# keeps: opt.state[*][*]
# keeps: opt.state[*]
# keeps: opt.state
# keeps: opt.state[*]['old_stps']
# also: old
import torch


def big(n=1):
    return torch.empty(n * (256 << 20), dtype=torch.uint8, device="cuda")


def main():
    w = torch.nn.Parameter(torch.randn(64 << 20, device="cuda"))
    opt = torch.optim.LBFGS([w], lr=0.1, history_size=1000, max_iter=4, tolerance_change=0, tolerance_grad=0)
    for d in range(4):
        opt.state[w].setdefault("old_dirs", []).append(big())
    old = opt.state[w]["old_dirs"]
    while True:
        old.append(big())


main()
