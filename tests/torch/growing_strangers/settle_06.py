# SPDX-License-Identifier: Apache-2.0
# settles: SWA model is made at step 20 and averaged every 5 steps, after about step 20
import torch
import torch.nn as nn
from torch.optim.swa_utils import AveragedModel, SWALR

SWA_START = 20


def make():
    return nn.Sequential(
        nn.Linear(2048, 2048), nn.ReLU(),
        nn.Linear(2048, 4096), nn.ReLU(),
        nn.Linear(4096, 2048), nn.ReLU(),
        nn.Linear(2048, 10),
    )


class Fit:
    def __init__(self):
        self.model = make().to("cuda")
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.sched = torch.optim.lr_scheduler.StepLR(self.opt, 10, 0.5)
        self.swa = None
        self.swa_sched = None
        self.i = 0

    def loss(self):
        x = torch.randn(256, 2048, device="cuda")
        y = torch.randint(0, 10, (256,), device="cuda")
        return nn.functional.cross_entropy(self.model(x), y)

    def after(self):
        if self.i < SWA_START:
            self.sched.step()
            return
        if self.swa is None:
            self.swa = AveragedModel(self.model)
            self.swa_sched = SWALR(self.opt, swa_lr=0.01, anneal_epochs=10)
        if self.i % 5 == 0:
            self.swa.update_parameters(self.model)
        self.swa_sched.step()

    def __iter__(self):
        while True:
            self.i += 1
            loss = self.loss()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.after()
            yield self.i, loss.detach()


fit = Fit()
try:
    for i, loss in fit:
        if i % 50 == 0:
            print(i, float(loss))
except torch.OutOfMemoryError:
    print(f"failed in step {fit.i}")
