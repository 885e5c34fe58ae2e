# SPDX-License-Identifier: Apache-2.0
"""Trains a model for some steps, sums up its own parameters, gradients and optimizer state, and runs out of memory with
all of them alive. kinds.py mlp|transformer|conv|gpt2|lightning"""
import json
import sys

import torch
import torch.nn as nn

name = sys.argv[1]


def blocks(tensors):
    """PyTorch rounds each tensor up to 512 bytes."""
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors if t is not None and t.is_cuda}
    return sum((size + 511) // 512 * 512 for size in storages.values())


def report(model, optimizer):
    """PyTorch frees its cache before it reports out of memory: the card's memory is queried after that."""
    try:
        torch.empty(1 << 40, dtype=torch.uint8, device="cuda")  # more than any card has
    finally:
        figures(model, optimizer)


def figures(model, optimizer):
    state = [v for s in optimizer.state.values() for v in s.values() if torch.is_tensor(v)]
    free, total = torch.cuda.mem_get_info()
    print("RESULT " + json.dumps({
        "parameters": blocks([*model.parameters(), *model.buffers()]), "gradients": blocks([p.grad for p in model.parameters()]),
        "optimizer": blocks(state), "free": free, "total": total, "allocated": torch.cuda.memory_allocated(),
        "reserved": torch.cuda.memory_reserved()}), flush=True)


def fit(model, optimizer, batch, loss_of):
    for _ in range(3):
        optimizer.zero_grad()
        loss = loss_of(model, batch())
        loss.backward()
        optimizer.step()
    del loss


def mlp():
    model = nn.Sequential(nn.Linear(4096, 8192), nn.ReLU(), nn.Linear(8192, 4096)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    fit(model, optimizer, lambda: torch.randn(256, 4096, device="cuda"), lambda m, x: m(x).square().mean())
    report(model, optimizer)


def transformer():
    layer = nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True)
    model = nn.TransformerEncoder(layer, 6).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    fit(model, optimizer, lambda: torch.randn(8, 256, 1024, device="cuda"), lambda m, x: m(x).square().mean())
    report(model, optimizer)


def conv():
    def stage(inside, outside):
        return nn.Sequential(nn.Conv2d(inside, outside, 3, padding=1), nn.BatchNorm2d(outside), nn.ReLU(), nn.MaxPool2d(2))

    model = nn.Sequential(stage(3, 128), stage(128, 512), stage(512, 1024), nn.Flatten(), nn.LazyLinear(1000)).cuda()
    model(torch.randn(2, 3, 64, 64, device="cuda"))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    images = torch.randn(32, 3, 64, 64, device="cuda")
    labels = torch.randint(1000, (32,), device="cuda")
    fit(model, optimizer, lambda: (images, labels), lambda m, b: nn.functional.cross_entropy(m(b[0]), b[1]))
    report(model, optimizer)


def gpt2():
    import transformers

    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=6)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    fit(model, optimizer, lambda: torch.randint(50257, (4, 256), device="cuda"), lambda m, x: m(input_ids=x, labels=x).loss)
    report(model, optimizer)


def lightning():
    try:
        import lightning.pytorch as pl
    except ImportError:
        import pytorch_lightning as pl

    class Module(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(2048, 8192), nn.GELU(), nn.Linear(8192, 2048))

        def training_step(self, batch, index):
            if index == 4:
                report(self, self.optimizers().optimizer)
            return self.net(batch[0]).square().mean()

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-4)

    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(512, 2048)), batch_size=64)
    pl.Trainer(max_epochs=1, accelerator="gpu", devices=1, logger=False, enable_checkpointing=False,
               enable_progress_bar=False, enable_model_summary=False).fit(Module(), data)


globals()[name]()
