# SPDX-License-Identifier: Apache-2.0
# A model and the state of its optimizer: two holders, the larger one first.
# expect: cause=oom-capacity|oom-request-too-large exit=1
# needs: torch
# gpu: sim:rtx4090
# holder: opt.state 360
import torch


def main():
    model = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(60)]).cuda()
    opt = torch.optim.AdamW(model.parameters())
    model(torch.randn(8, 4096, device="cuda")).sum().backward()
    opt.step()
    opt.zero_grad()
    torch.empty(22000 << 20, dtype=torch.uint8, device="cuda")


main()
