# SPDX-License-Identifier: Apache-2.0
# keeps: probe.grads
# keeps: probe.grads[*]
# also: probe.grads[*][*]
import torch


def big(n=1):
    return torch.empty(n * (256 << 20), dtype=torch.uint8, device="cuda")


class Probe:
    def __init__(self):
        self.grads = {}

    def watch(self, name, module):
        def hook(m, grad_in, grad_out):
            self.grads.setdefault(name, []).append(big())
        module.register_full_backward_hook(hook)


def main():
    model = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(12)]).cuda()
    probe = Probe()
    for name, module in model.named_modules():
        if not name.endswith("0"):
            probe.watch(name, module)
    while True:
        model(torch.randn(4, 64, device="cuda", requires_grad=True)).sum().backward()


main()
