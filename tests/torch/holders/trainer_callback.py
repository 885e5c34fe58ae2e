# SPDX-License-Identifier: Apache-2.0
# keeps: trainer.callbacks[1].best
# keeps: trainer.callbacks[*].best
# keeps: trainer.callbacks[1].best[*]
# keeps: trainer.callbacks[*].best[*]
# also: trainer.callbacks[*].best[*][*]
import torch


def big(n=1):
    return torch.empty(n * (256 << 20), dtype=torch.uint8, device="cuda")


class Callback:
    def on_step_end(self, trainer):
        pass


class Progress(Callback):
    def __init__(self):
        self.seen = 0

    def on_step_end(self, trainer):
        self.seen += 1


class KeepBest(Callback):
    def __init__(self):
        self.best = []

    def on_step_end(self, trainer):
        self.best.append({k: v.detach().clone() for k, v in trainer.model.state_dict().items()})


class Trainer:
    def __init__(self, model, callbacks):
        self.model, self.callbacks = model, callbacks

    def train(self):
        while True:
            for callback in self.callbacks:
                callback.on_step_end(self)


def main():
    model = torch.nn.Sequential(torch.nn.Linear(8192, 8192), torch.nn.Linear(8192, 8192)).cuda()
    trainer = Trainer(model, [Progress(), KeepBest()])
    trainer.train()


main()
