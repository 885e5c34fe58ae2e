# SPDX-License-Identifier: Apache-2.0
# A forward hook keeps what it sees, in a variable of the function that registered it.
# expect: cause=oom-growth|oom-capacity exit=1
# needs: torch
# gpu: sim:rtx4090
# holder: model._forward_hooks[*] → closure of on_forward(): seen 92
import torch

model = torch.nn.Linear(8, 8).cuda()


def watch(module):
    seen = []

    def on_forward(module, given, out):
        seen.append(torch.empty(256 << 20, dtype=torch.uint8, device="cuda"))
    module.register_forward_hook(on_forward)


watch(model)
x = torch.randn(2, 8, device="cuda")
with torch.no_grad():
    while True:
        model(x)
