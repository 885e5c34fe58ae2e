# SPDX-License-Identifier: Apache-2.0
# Lightning: the training step keeps its outputs for the end of the epoch, with their graphs.
# expect: cause=oom-graph-retention certainty=certain,likely exit=1
# needs: torch lightning
# alone
import lightning.pytorch as pl
import torch
import torch.nn as nn


class Module(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4096, 8192), nn.GELU(), nn.Linear(8192, 4096))
        self.outputs = []

    def training_step(self, batch, index):
        x = batch[0].repeat(64, 1)
        loss = self.net(x).square().mean()
        self.outputs.append(self.net(x))  # <- culprit
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-4)


data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(65536, 4096)), batch_size=256)
pl.Trainer(max_epochs=1, accelerator="gpu", devices=1, logger=False, enable_checkpointing=False,
           enable_progress_bar=False, enable_model_summary=False).fit(Module(), data)
