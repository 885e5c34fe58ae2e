# SPDX-License-Identifier: Apache-2.0
# Half of what a model keeps is its gradients, which nobody needs here.
# expect: cause=oom-capacity|oom-request-too-large exit=1
# needs: torch
# gpu: sim:rtx4090
# holder: model 120 gradient 4027514880
import torch


def main():
    model = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(60)]).cuda()
    for _ in range(2):
        model(torch.randn(8, 4096, device="cuda")).sum().backward()
    torch.empty(22000 << 20, dtype=torch.uint8, device="cuda")


main()
