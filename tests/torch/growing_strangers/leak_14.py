# SPDX-License-Identifier: Apache-2.0
# leak: closures for deferred image logging are queued and never run, about 32 MiB per step
import torch
import torch.nn as nn


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(
            nn.Conv2d(1, 16, 4, 2, 1), nn.ReLU(True),
            nn.Conv2d(16, 32, 4, 2, 1), nn.ReLU(True),
        )
        self.dec = nn.Sequential(
            nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.ReLU(True),
            nn.ConvTranspose2d(16, 1, 4, 2, 1), nn.Sigmoid(),
        )

    def forward(self, x):
        return self.dec(self.enc(x))


class DeferredLogger:
    """Collects what has to be written, to write it when the epoch is over."""

    def __init__(self):
        self.queue = []

    def later(self, fn):
        self.queue.append(fn)

    def flush(self):
        for fn in self.queue:
            fn()
        self.queue.clear()


class Callback:
    def on_batch_end(self, trainer, x, recon): ...
    def on_epoch_end(self, trainer): ...


class ImageCallback(Callback):
    def __init__(self):
        self.logger = DeferredLogger()

    def on_batch_end(self, trainer, x, recon):
        n = trainer.global_step

        def write():
            err = (x - recon).abs().mean().item()
            print(f"step {n}: reconstruction error {err:.4f}")

        self.logger.later(write)

    def on_epoch_end(self, trainer):
        self.logger.flush()


class Trainer:
    def __init__(self, callbacks):
        self.callbacks = callbacks
        self.model = AutoEncoder().cuda()
        self.opt = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.global_step = 0

    def data(self):
        while True:  # an endless stream: the epoch is never over
            self.global_step += 1
            yield torch.rand(256, 1, 128, 128, device="cuda")

    def fit(self):
        for x in self.data():
            recon = self.model(x)
            loss = nn.functional.binary_cross_entropy(recon, x)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            for cb in self.callbacks:
                cb.on_batch_end(self, x, recon.detach())
        for cb in self.callbacks:
            cb.on_epoch_end(self)


trainer = Trainer([ImageCallback()])
try:
    trainer.fit()
except torch.OutOfMemoryError:
    print(f"failed in step {trainer.global_step}")
