# SPDX-License-Identifier: Apache-2.0
# label: oom-growth
"""Semantic segmentation with a module in the manner of Lightning."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Module(nn.Module):
    def on_validation_epoch_end(self):
        pass


class Segmenter(Module):
    def __init__(self, classes=19):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, classes, 1))
        self.validation_step_outputs = []

    def forward(self, x):
        return self.net(x)  #@here

    def training_step(self, batch, batch_idx):
        image, mask = batch
        return F.cross_entropy(self(image), mask)

    def validation_step(self, batch, batch_idx):
        image, mask = batch
        logits = self(image)  #@here
        loss = F.cross_entropy(logits, mask)
        self.validation_step_outputs.append({"loss": loss, "logits": logits, "mask": mask})  #@here
        return loss

    def on_validation_epoch_end(self):
        mean = torch.stack([o["loss"] for o in self.validation_step_outputs]).mean()
        print("val_loss", mean.item())

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class Cityscapes:
    def __init__(self, batches, size=192):
        self.batches, self.size = batches, size

    def __len__(self):
        return self.batches

    def __getitem__(self, index):
        if index >= self.batches:
            raise IndexError
        count = 16  #@scale
        image = torch.rand(count, 3, self.size, self.size, device="cuda")
        return image, torch.randint(0, 19, (count, self.size, self.size), device="cuda")


class Fit:
    def __init__(self, max_epochs):
        self.max_epochs = max_epochs

    def run(self, module, train, val):
        optimizer = module.configure_optimizers()
        for epoch in range(self.max_epochs):
            module.train()
            for i, batch in enumerate(train):
                loss = module.training_step(batch, i)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            module.eval()
            with torch.no_grad():
                for i, batch in enumerate(val):
                    module.validation_step(batch, i)
            module.on_validation_epoch_end()


Fit(max_epochs=200).run(Segmenter().cuda(), Cityscapes(6), Cityscapes(5))
