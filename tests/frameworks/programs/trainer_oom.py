# SPDX-License-Identifier: Apache-2.0
"""A training with Hugging Face's Trainer that runs out of memory in a step, with cuwhy's callback."""
import sys

import torch
from cuwhy.transformers import CuwhyCallback
from transformers import Trainer, TrainingArguments


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(256, 256)
        self.steps = 0

    def forward(self, x):
        self.steps += 1
        if self.steps == 3:
            torch.empty(1 << 44, dtype=torch.uint8, device=x.device)  # <- here
        return {"loss": self.layer(x).square().mean()}


callback = CuwhyCallback()
arguments = TrainingArguments(output_dir=sys.argv[1], per_device_train_batch_size=4, report_to=[], save_strategy="no", disable_tqdm=True,
                              logging_strategy="no", remove_unused_columns=False)
trainer = Trainer(Model(), arguments, train_dataset=[{"x": torch.randn(256)} for _ in range(32)], callbacks=[callback])
try:
    trainer.train()
except torch.OutOfMemoryError:
    print("raised", callback.verdict.cause, callback.verdict.where.line)
later = CuwhyCallback().attach(trainer)
trainer.model.steps = 2
try:
    trainer.evaluate([{"x": torch.randn(256)} for _ in range(8)])
except torch.OutOfMemoryError:
    print("raised", later.verdict.cause)
