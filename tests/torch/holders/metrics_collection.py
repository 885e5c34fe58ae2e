# SPDX-License-Identifier: Apache-2.0
# keeps: fit.metrics.auroc.preds
# keeps: module.metrics.auroc.preds
import torch


def big(n=1):
    return torch.empty(n * (256 << 20), dtype=torch.uint8, device="cuda")


class Metric(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self._defaults = {}

    def add_state(self, name, default):
        setattr(self, name, default)
        self._defaults[name] = default


class Auroc(Metric):
    def __init__(self):
        super().__init__()
        self.add_state("preds", [])

    def update(self, preds):
        self.preds.append(preds)


class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(8, 8)
        self.metrics = torch.nn.ModuleDict({"auroc": Auroc()})


def validate(module):
    with torch.no_grad():
        while True:
            module.metrics["auroc"].update(big())


validate(Module().cuda())
