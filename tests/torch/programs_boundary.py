# SPDX-License-Identifier: Apache-2.0
"""Programs whose memory grows with the batch: boundary.py looks for the largest one that a card takes.

Each makes its model and takes three steps with the given batch. `step` of it: how far apart the batches are that are tried, such
that a card of 24 GiB has room for some tens of steps. What they train on is made on the GPU, to keep a try short.
"""
import torch
import torch.nn.functional as F
from torch import nn

from programs import Block, Decoder, resnet
from programs_users import Denoiser, build

PROGRAMS = {}
STEPS = 3


def batched(step):
    def add(function):
        function.step = step
        PROGRAMS[function.__name__] = function
        return function
    return add


def train(parameters, optimizer, loss_of, amp=False, parts=1):
    """The loop that all of them share: loss_of() is one part of a step."""
    for _ in range(STEPS):
        for _ in range(parts):
            with torch.autocast("cuda", torch.bfloat16, enabled=amp):
                loss = loss_of()
            (loss / parts).backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()


@batched(step=1)
def decoder_batch(batch):
    """A language model with AdamW and bf16 autocast."""
    model = Decoder().cuda()

    def loss_of():
        ids = torch.randint(0, 32000, (batch, 1024), device="cuda")
        return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    parameters = list(model.parameters())
    train(parameters, torch.optim.AdamW(parameters, lr=3e-4), loss_of, amp=True)


@batched(step=2)
def encoder_batch(batch):
    """PyTorch's own encoder, all in fp32."""
    layer = nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True, norm_first=True)
    model = nn.Sequential(nn.Embedding(30000, 768), nn.TransformerEncoder(layer, 12, enable_nested_tensor=False),
                          nn.Linear(768, 30000)).cuda()

    def loss_of():
        ids = torch.randint(0, 30000, (batch, 256), device="cuda")
        return F.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
    parameters = list(model.parameters())
    train(parameters, torch.optim.Adam(parameters, lr=1e-4), loss_of)


@batched(step=8)
def resnet_batch(batch):
    """ResNet-50 in fp32 with SGD."""
    model = resnet().cuda()

    def loss_of():
        x = torch.randn(batch, 3, 224, 224, device="cuda")
        return F.cross_entropy(model(x), torch.randint(0, 1000, (batch,), device="cuda"))
    parameters = list(model.parameters())
    train(parameters, torch.optim.SGD(parameters, 0.1, momentum=0.9, weight_decay=1e-4), loss_of)


@batched(step=2)
def denoiser_batch(batch):
    """A UNet that predicts noise: channels last, bf16 autocast."""
    model = Denoiser(width=160).cuda().to(memory_format=torch.channels_last)

    def loss_of():
        x = torch.randn(batch, 4, 64, 64, device="cuda").to(memory_format=torch.channels_last)
        noise, t = torch.randn_like(x), torch.randint(0, 1000, (batch,), device="cuda")
        return F.mse_loss(model(x + noise, t).float(), noise)
    parameters = list(model.parameters())
    train(parameters, torch.optim.AdamW(parameters, lr=1e-4), loss_of, amp=True)


class Reader(nn.Module):
    """Texts in classes by the last state of an LSTM."""

    def __init__(self, words=50000, width=512, hidden=1024, classes=20):
        super().__init__()
        self.embed, self.drop = nn.Embedding(words, width), nn.Dropout(0.2)
        self.layers, self.head = nn.LSTM(width, hidden, 2, batch_first=True, dropout=0.2), nn.Linear(hidden, classes)

    def forward(self, ids):
        _, (state, _) = self.layers(self.drop(self.embed(ids)))
        return self.head(self.drop(state[-1]))


@batched(step=16)
def lstm_batch(batch):
    model = Reader().cuda()

    def loss_of():
        return F.cross_entropy(model(torch.randint(0, 50000, (batch, 512), device="cuda")),
                               torch.randint(0, 20, (batch,), device="cuda"))
    parameters = list(model.parameters())
    train(parameters, torch.optim.Adam(parameters, lr=1e-3), loss_of)


@batched(step=2)
def llama_batch(batch):
    """Llama of transformers, bf16, with checkpoints."""
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=16, num_attention_heads=16,
                         num_key_value_heads=4, max_position_embeddings=1024, use_cache=False)
    model = build(LlamaForCausalLM, config, torch.bfloat16)
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.train()

    def loss_of():
        ids = torch.randint(0, 32000, (batch, 1024), device="cuda")
        return model(input_ids=ids, labels=ids).loss
    parameters = list(model.parameters())
    train(parameters, torch.optim.AdamW(parameters, lr=3e-4), loss_of)


@batched(step=2)
def cache_batch(batch):
    """Answers of 32 words to prompts of 1024, with a cache that grows by a word at a time."""
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(vocab_size=32000, hidden_size=2048, intermediate_size=5504, num_hidden_layers=20, num_attention_heads=16,
                         num_key_value_heads=16, max_position_embeddings=2048)
    model = build(LlamaForCausalLM, config, torch.bfloat16).eval()
    with torch.inference_mode():
        for _ in range(STEPS):
            word, cache = torch.randint(0, 32000, (batch, 1024), device="cuda"), None
            for _ in range(32):
                output = model(input_ids=word, past_key_values=cache, use_cache=True)
                cache, word = output.past_key_values, output.logits[:, -1].argmax(-1, keepdim=True)


class Sight(nn.Module):
    def __init__(self, width=768, layers=12, heads=12, classes=1000):
        super().__init__()
        self.patch, self.place = nn.Conv2d(3, width, 16, 16), nn.Parameter(0.02 * torch.randn(1, 196, width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        x = self.blocks(self.patch(x).flatten(2).transpose(1, 2) + self.place)
        return self.head(self.norm(x).mean(dim=1))


@batched(step=8)
def vit_batch(batch):
    """A ViT under bf16 autocast that adds up the gradients of four batches before each step."""
    model = Sight().cuda()

    def loss_of():
        x = torch.randn(batch, 3, 224, 224, device="cuda")
        return F.cross_entropy(model(x), torch.randint(0, 1000, (batch,), device="cuda"))
    parameters = list(model.parameters())
    train(parameters, torch.optim.AdamW(parameters, lr=1e-3), loss_of, amp=True, parts=4)
