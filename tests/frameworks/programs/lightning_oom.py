# SPDX-License-Identifier: Apache-2.0
"""A training with Lightning that runs out of memory in its third step, with cuwhy's callback."""
import sys

import lightning.pytorch as pl
import torch
from cuwhy.lightning import CuwhyCallback


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(256, 256)
        self.kept = []

    def training_step(self, batch, index):
        if index == 2:
            self.kept.append(torch.empty(1 << 44, dtype=torch.uint8, device=self.device))  # <- here
        return self.layer(batch).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


callback = CuwhyCallback()
trainer = pl.Trainer(max_epochs=1, accelerator="gpu", devices=1, callbacks=[callback], logger=False, enable_checkpointing=False,
                     enable_progress_bar=False, enable_model_summary=False, default_root_dir=sys.argv[1])
try:
    trainer.fit(Model(), torch.utils.data.DataLoader(torch.randn(32, 256), batch_size=4))
except torch.OutOfMemoryError:
    print("raised", callback.verdict.cause, callback.verdict.where.line)
