# SPDX-License-Identifier: Apache-2.0
# label: oom-eval-without-no-grad oom-graph-retention
"""Fine-tunes a small sequence classifier with a trainer in the manner of Hugging Face's."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class TrainingArguments:
    per_device_train_batch_size: int = 32  #@scale
    max_steps: int = 6
    eval_steps: int = 3
    learning_rate: float = 5e-5


class Encoder(nn.Module):
    def __init__(self, vocab_size=12000, hidden_size=256, layers=4, num_labels=3):
        super().__init__()
        self.embeddings = nn.Embedding(vocab_size, hidden_size)
        layer = nn.TransformerEncoderLayer(hidden_size, 4, 1024, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.classifier = nn.Linear(hidden_size, num_labels)

    def forward(self, input_ids, labels=None):
        hidden = self.encoder(self.embeddings(input_ids))
        logits = self.classifier(hidden[:, 0])  #@here
        loss = F.cross_entropy(logits, labels) if labels is not None else None  #@here
        return {"loss": loss, "logits": logits}


class Trainer:
    def __init__(self, model, args, train_dataset, eval_dataset):
        self.model, self.args = model.to("cuda"), args
        self.train_dataset, self.eval_dataset = train_dataset, eval_dataset
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=args.learning_rate)

    def get_batches(self, dataset):
        size = self.args.per_device_train_batch_size
        while True:
            rows = [dataset[i] for i in range(8)]
            ids = torch.stack([r["input_ids"] for r in rows]).repeat(size // 8 + 1, 1)[:size]
            labels = torch.tensor([r["label"] for r in rows]).repeat(size // 8 + 1)[:size]
            yield {"input_ids": ids.to("cuda"), "labels": labels.to("cuda")}

    def training_step(self, inputs):
        self.model.train()
        outputs = self.model(**inputs)
        outputs["loss"].backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return outputs["loss"].detach()

    def prediction_step(self, inputs):
        self.model.eval()
        outputs = self.model(**inputs)  #@here
        return outputs["loss"], outputs["logits"]

    def evaluate(self, max_batches=2000):
        losses, preds = [], []
        for number, inputs in enumerate(self.get_batches(self.eval_dataset)):
            if number == max_batches:
                break
            loss, logits = self.prediction_step(inputs)
            losses.append(loss)  #@here
            preds.append(logits)  #@here
        return {"eval_loss": torch.stack(losses).mean().item(), "predictions": torch.cat(preds).argmax(-1).cpu()}

    def train(self):
        batches = self.get_batches(self.train_dataset)
        for step in range(1, self.args.max_steps + 1):
            loss = self.training_step(next(batches))
            if step % self.args.eval_steps == 0:
                metrics = self.evaluate()
                print(step, loss.item(), metrics["eval_loss"])


class Reviews(torch.utils.data.Dataset):
    def __len__(self):
        return 10000

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return {"input_ids": torch.randint(0, 12000, (192,), generator=generator), "label": index % 3}


if __name__ == "__main__":
    Trainer(Encoder(), TrainingArguments(), Reviews(), Reviews()).train()
