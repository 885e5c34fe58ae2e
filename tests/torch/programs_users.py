# SPDX-License-Identifier: Apache-2.0
"""Programs as people write them: models of Hugging Face transformers by their configuration alone, and plain PyTorch.

The same form as programs.py. They were written from the documentation of PyTorch and transformers, and are not changed to suit
the simulated GPU: if one does not run there, that is what it is for. Nothing is downloaded, and all weights are random. Whatever
is drawn on the host is drawn from a seed, so that each run has the same shapes.
"""
import copy
import math
import random

import torch
import torch.nn.functional as F
from torch import nn

from programs import registry

PROGRAMS, program = registry()


def build(kind, config, dtype=torch.float32):
    """A model of transformers made on the GPU. To fill a billion weights on the host first would take most of the run."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device("cuda"):
            return kind(config)
    finally:
        torch.set_default_dtype(before)


def decayed(model, decay):
    """The parameters in the two groups that most training scripts make: no weight decay for biases and norms."""
    trained = [p for p in model.parameters() if p.requires_grad]
    return [{"params": [p for p in trained if p.ndim >= 2], "weight_decay": decay},
            {"params": [p for p in trained if p.ndim < 2], "weight_decay": 0.0}]


# --- language ------------------------------------------------------------------------------------


@program()
def llama_checkpointed():
    """Pretraining in pure bf16, a billion weights, with checkpoints, warm-up and clipping."""
    from transformers import LlamaConfig, LlamaForCausalLM, get_cosine_schedule_with_warmup
    config = LlamaConfig(vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, num_attention_heads=32,
                         num_key_value_heads=4, max_position_embeddings=2048, use_cache=False)
    model = build(LlamaForCausalLM, config).to(torch.bfloat16)
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.train()
    optimizer = torch.optim.AdamW(decayed(model, 0.1), lr=4e-4, betas=(0.9, 0.95))
    schedule = get_cosine_schedule_with_warmup(optimizer, 2, 100)
    for _ in range(4):
        ids = torch.randint(0, config.vocab_size, (4, 2048)).to("cuda", non_blocking=True)
        model(input_ids=ids, labels=ids).loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad(set_to_none=True)


@program()
def gpt2_scaled():
    """GPT-2 medium with autocast to fp16 and a GradScaler, which may skip the first steps until its scale fits: hence six."""
    from transformers import GPT2Config, GPT2LMHeadModel
    config = GPT2Config(n_embd=1024, n_layer=24, n_head=16)
    model = build(GPT2LMHeadModel, config).train()
    optimizer = torch.optim.AdamW(decayed(model, 0.01), lr=5e-5)
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(6):
        ids = torch.randint(0, config.vocab_size, (8, 768)).cuda()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(input_ids=ids, labels=ids).loss
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def train_8bit(kind):
    """GPT-2 medium in bf16 whose optimizer is one of bitsandbytes."""
    import bitsandbytes
    from transformers import GPT2Config, GPT2LMHeadModel
    model = build(GPT2LMHeadModel, GPT2Config(n_embd=1024, n_layer=24, n_head=16), torch.bfloat16).train()
    optimizer = getattr(bitsandbytes.optim, kind)(decayed(model, 0.01), lr=5e-5)
    for _ in range(4):
        ids = torch.randint(0, 50257, (4, 1024)).cuda()
        model(input_ids=ids, labels=ids).loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


@program(needs="bitsandbytes")
def gpt2_8bit():
    """AdamW with states of 8 bits."""
    train_8bit("AdamW8bit")


@program(needs="bitsandbytes")
def gpt2_8bit_paged():
    """The same with states that the driver moves to the host when the GPU is full."""
    train_8bit("PagedAdamW8bit")


@program()
def t5_summaries():
    """T5 base in fp32, with teacher forcing: the labels shifted right are the decoder's input, and padding is not in the loss."""
    from transformers import T5Config, T5ForConditionalGeneration
    config = T5Config(d_model=768, d_kv=64, d_ff=3072, num_layers=12, num_decoder_layers=12, num_heads=12, decoder_start_token_id=0)
    model = build(T5ForConditionalGeneration, config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    draw = random.Random(3)
    for _ in range(3):
        source = torch.randint(2, config.vocab_size, (16, 512))
        target = torch.randint(2, config.vocab_size, (16, 128))
        mask = torch.ones_like(source)
        for row in range(16):
            source_length, target_length = draw.randint(200, 512), draw.randint(30, 128)
            source[row, source_length:], mask[row, source_length:] = config.pad_token_id, 0
            target[row, target_length - 1], target[row, target_length:] = config.eos_token_id, -100
        loss = model(input_ids=source.cuda(), attention_mask=mask.cuda(), labels=target.cuda()).loss
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


@program()
def bert_padded():
    """Masked words with batches padded to their longest text: each step has other shapes, and the caching allocator gets holes."""
    from transformers import BertConfig, BertForMaskedLM
    config = BertConfig()
    model = build(BertForMaskedLM, config).train()
    optimizer = torch.optim.AdamW(decayed(model, 0.01), lr=1e-4)
    draw = random.Random(4)
    for _ in range(12):
        longest = draw.randint(64, 448)
        texts = [torch.randint(1000, config.vocab_size, (draw.randint(16, longest),)) for _ in range(48)]
        ids = nn.utils.rnn.pad_sequence(texts, batch_first=True, padding_value=config.pad_token_id)
        mask = (ids != config.pad_token_id).long()
        hidden = (torch.rand(ids.shape) < 0.15) & mask.bool()
        labels = ids.masked_fill(~hidden, -100)
        ids = ids.masked_fill(hidden, 103)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(input_ids=ids.cuda(), attention_mask=mask.cuda(), labels=labels.cuda()).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def answering():
    """A model of 1.3 billion weights that answers, and eight prompts."""
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(vocab_size=32000, hidden_size=2048, intermediate_size=5504, num_hidden_layers=24, num_attention_heads=16,
                         num_key_value_heads=16, max_position_embeddings=4096)
    return build(LlamaForCausalLM, config, torch.bfloat16).eval(), torch.randint(3, config.vocab_size, (8, 1536)).cuda()


@program()
def llama_generate():
    """Greedy answers with generate() and its cache, always of the same length. generate() asks the GPU after each word whether all
    answers have ended, so where no kernel computes, it does not learn that they have."""
    model, prompt = answering()
    with torch.inference_mode():
        answer = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, min_new_tokens=128,
                                max_new_tokens=128, pad_token_id=0)
    assert answer.shape == (8, 1536 + 128), "generate() ended after %d words" % (answer.shape[1] - 1536)


@program()
def llama_answers():
    """The same answers by a loop of one's own, which counts the words on the host."""
    model, prompt = answering()
    word, cache, words = prompt, None, []
    with torch.inference_mode():
        for _ in range(128):
            output = model(input_ids=word, past_key_values=cache, use_cache=True)
            cache, word = output.past_key_values, output.logits[:, -1].argmax(-1, keepdim=True)
            words.append(word)
        torch.cat([prompt, *words], dim=1)


class Adapter(nn.Module):
    """LoRA around a frozen layer: its own two matrices in fp32, and dropout on the way in."""

    def __init__(self, base, rank=16, alpha=32, dropout=0.05):
        super().__init__()
        self.base, self.scale, self.dropout = base, alpha / rank, nn.Dropout(dropout)
        device = base.weight.device
        self.down = nn.Linear(base.in_features, rank, bias=False, device=device, dtype=torch.float32)
        self.up = nn.Linear(rank, base.out_features, bias=False, device=device, dtype=torch.float32)
        nn.init.kaiming_uniform_(self.down.weight, a=math.sqrt(5))
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        more = self.up(self.down(self.dropout(x.to(self.down.weight.dtype))))
        return self.base(x) + (self.scale * more).to(x.dtype)


@program()
def llama_adapters():
    """Fine-tuning of a frozen bf16 model of three billion weights: LoRA in every projection of the attention, two parts a step."""
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(vocab_size=128256, hidden_size=3072, intermediate_size=8192, num_hidden_layers=28, num_attention_heads=24,
                         num_key_value_heads=8, max_position_embeddings=4096, tie_word_embeddings=True, use_cache=False)
    model = build(LlamaForCausalLM, config, torch.bfloat16).train()
    model.requires_grad_(False)
    for layer in model.model.layers:
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(layer.self_attn, name, Adapter(getattr(layer.self_attn, name)))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-4)
    for _ in range(3):
        for _ in range(2):
            ids = torch.randint(0, config.vocab_size, (2, 1024)).cuda()
            (model(input_ids=ids, labels=ids).loss / 2).backward()
        optimizer.step()
        optimizer.zero_grad()


# --- pictures ------------------------------------------------------------------------------------


class TimedResidual(nn.Module):
    """Two convolutions with GroupNorm, between them the time; a 1x1 convolution where the number of channels changes."""

    def __init__(self, inside, outside, time):
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(32, inside), nn.SiLU(), nn.Conv2d(inside, outside, 3, padding=1))
        self.time = nn.Sequential(nn.SiLU(), nn.Linear(time, outside))
        self.second = nn.Sequential(nn.GroupNorm(32, outside), nn.SiLU(), nn.Dropout(0.1), nn.Conv2d(outside, outside, 3, padding=1))
        self.side = nn.Conv2d(inside, outside, 1) if inside != outside else nn.Identity()

    def forward(self, x, time):
        y = self.first(x) + self.time(time)[:, :, None, None]
        return self.side(x) + self.second(y)


class PictureAttention(nn.Module):
    def __init__(self, width, heads=8):
        super().__init__()
        self.heads, self.norm = heads, nn.GroupNorm(32, width)
        self.qkv, self.out = nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x):
        batch, width, high, wide = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(batch, 3, self.heads, width // self.heads, high * wide).transpose(-1, -2).unbind(1)
        y = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(y.transpose(-1, -2).reshape(batch, width, high, wide))


class Level(nn.Module):
    """Residual blocks of one resolution, each with attention after it where the pictures are small."""

    def __init__(self, widths, outside, time, attention):
        super().__init__()
        self.blocks = nn.ModuleList(TimedResidual(inside, outside, time) for inside in widths)
        self.attention = nn.ModuleList(PictureAttention(outside) if attention else nn.Identity() for _ in widths)


class Denoiser(nn.Module):
    def __init__(self, channels=4, width=192, factors=(1, 2, 3, 4), depth=2):
        super().__init__()
        time, self.width = 4 * width, width
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.start = nn.Conv2d(channels, width, 3, padding=1)
        self.downs, self.ups, self.shrink, self.grow = nn.ModuleList(), nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        kept, inside = [width], width
        for i, factor in enumerate(factors):
            outside = width * factor
            self.downs.append(Level([inside] + [outside] * (depth - 1), outside, time, i > 0))
            kept += [outside] * depth
            inside = outside
            if i + 1 < len(factors):
                self.shrink.append(nn.Conv2d(inside, inside, 3, stride=2, padding=1))
                kept.append(inside)
        self.middle1, self.middle2 = TimedResidual(inside, inside, time), TimedResidual(inside, inside, time)
        self.look = PictureAttention(inside)
        for i, factor in reversed(list(enumerate(factors))):
            outside = width * factor
            self.ups.append(Level([(inside if not j else outside) + kept.pop() for j in range(depth + 1)], outside, time, i > 0))
            inside = outside
            if i:
                self.grow.append(nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(inside, inside, 3, padding=1)))
        self.end = nn.Sequential(nn.GroupNorm(32, inside), nn.SiLU(), nn.Conv2d(inside, channels, 3, padding=1))

    def forward(self, x, t):
        half = self.width // 2
        waves = t[:, None].float() * torch.exp(-math.log(10000) * torch.arange(half, device=t.device) / half)
        time = self.time(torch.cat([waves.sin(), waves.cos()], dim=1))
        x = self.start(x)
        kept = [x]
        for i, level in enumerate(self.downs):
            for block, attention in zip(level.blocks, level.attention):
                x = attention(block(x, time))
                kept.append(x)
            if i < len(self.shrink):
                x = self.shrink[i](x)
                kept.append(x)
        x = self.middle2(self.look(self.middle1(x, time)), time)
        for i, level in enumerate(self.ups):
            for block, attention in zip(level.blocks, level.attention):
                x = attention(block(torch.cat([x, kept.pop()], dim=1), time))
            if i < len(self.grow):
                x = self.grow[i](x)
        return self.end(x)


@program()
def diffusion_ema():
    """Noise is predicted on latents of 64x64, channels last under bf16 autocast, with a moving average of the weights."""
    model = Denoiser().cuda().to(memory_format=torch.channels_last)
    average = copy.deepcopy(model).eval().requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000), 0).cuda()
    for _ in range(4):
        clean = torch.randn(24, 4, 64, 64).cuda().to(memory_format=torch.channels_last)
        noise, t = torch.randn_like(clean), torch.randint(0, 1000, (24,), device="cuda")
        share = kept[t][:, None, None, None]
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.mse_loss(model(share.sqrt() * clean + (1 - share).sqrt() * noise, t).float(), noise)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            for ours, theirs in zip(average.parameters(), model.parameters()):
                ours.lerp_(theirs, 1e-3)


class Mixer(nn.Module):
    """MLP-Mixer: one MLP over the patches, one over the channels."""

    class Block(nn.Module):
        def __init__(self, patches, width):
            super().__init__()
            def mlp(inside, middle):
                return nn.Sequential(nn.Linear(inside, middle), nn.GELU(), nn.Linear(middle, inside))
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.over_patches, self.over_channels = mlp(patches, width // 2), mlp(width, 4 * width)

        def forward(self, x):
            x = x + self.over_patches(self.norm1(x).transpose(1, 2)).transpose(1, 2)
            return x + self.over_channels(self.norm2(x))

    def __init__(self, width=768, layers=4, classes=1000):
        super().__init__()
        self.patch = nn.Conv2d(3, width, 16, 16)
        self.blocks = nn.Sequential(*(Mixer.Block(196, width) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        x = self.blocks(self.patch(x).flatten(2).transpose(1, 2))
        return self.head(self.norm(x).mean(dim=1))


@program()
def mixer_compiled():
    """A training step whose model goes through torch.compile."""
    model = Mixer().cuda()
    compiled = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for _ in range(5):
        x, target = torch.randn(256, 3, 224, 224).cuda(), torch.randint(0, 1000, (256,)).cuda()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(compiled(x), target, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@program()
def clip_towers():
    """Pictures and texts in one space: each picture of the batch against each text, with a learned temperature."""
    from transformers import BertConfig, BertModel, ViTConfig, ViTModel
    vision = build(lambda config: ViTModel(config, add_pooling_layer=False), ViTConfig())
    text = build(lambda config: BertModel(config, add_pooling_layer=False),
                 BertConfig(vocab_size=49408, hidden_size=512, num_hidden_layers=12, num_attention_heads=8, intermediate_size=2048))
    see, say = nn.Linear(768, 512, bias=False).cuda(), nn.Linear(512, 512, bias=False).cuda()
    scale = nn.Parameter(torch.tensor(math.log(1 / 0.07), device="cuda"))
    trained = [scale, *(p for part in (vision, text, see, say) for p in part.parameters())]
    optimizer = torch.optim.AdamW(trained, lr=5e-4, betas=(0.9, 0.98), weight_decay=0.2)
    batch, draw = 128, random.Random(9)
    for _ in range(3):
        pictures = torch.randn(batch, 3, 224, 224).cuda()
        ids, mask = torch.randint(1, 49408, (batch, 77)), torch.ones(batch, 77, dtype=torch.long)
        for row in range(batch):
            length = draw.randint(8, 77)
            ids[row, length:], mask[row, length:] = 0, 0
        with torch.autocast("cuda", dtype=torch.bfloat16):
            a = F.normalize(see(vision(pixel_values=pictures).last_hidden_state[:, 0]), dim=-1)
            b = F.normalize(say(text(input_ids=ids.cuda(), attention_mask=mask.cuda()).last_hidden_state[:, 0]), dim=-1)
            logits = scale.exp() * a @ b.T
            same = torch.arange(batch, device="cuda")
            loss = (F.cross_entropy(logits, same) + F.cross_entropy(logits.T, same)) / 2
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            scale.clamp_(0, math.log(100))


# --- speech --------------------------------------------------------------------------------------


class Speech(nn.Module):
    """Two convolutions that halve time and frequency, five bidirectional layers, a letter per frame."""

    def __init__(self, bands=80, width=768, letters=29):
        super().__init__()
        self.front = nn.Sequential(nn.Conv2d(1, 32, (11, 41), (2, 2), (5, 20), bias=False), nn.BatchNorm2d(32), nn.Hardtanh(0, 20, True),
                                   nn.Conv2d(32, 32, (11, 21), (1, 2), (5, 10), bias=False), nn.BatchNorm2d(32), nn.Hardtanh(0, 20, True))
        self.layers = nn.LSTM(32 * bands // 4, width, 5, batch_first=True, bidirectional=True, dropout=0.1)
        self.norm, self.head = nn.LayerNorm(2 * width), nn.Linear(2 * width, letters)

    def forward(self, x, lengths):
        y = self.front(x.unsqueeze(1))
        y = y.transpose(1, 2).flatten(2)
        packed = nn.utils.rnn.pack_padded_sequence(y, lengths, batch_first=True)
        y, _ = nn.utils.rnn.pad_packed_sequence(self.layers(packed)[0], batch_first=True)
        return self.head(self.norm(y)).log_softmax(-1).transpose(0, 1)


@program()
def speech_ctc():
    """Speech as letters: recordings of different lengths, sorted and packed, with the lengths on the host."""
    model, loss_of = Speech().cuda(), nn.CTCLoss(zero_infinity=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    draw = random.Random(10)
    for _ in range(4):
        frames = sorted((draw.randint(600, 1600) for _ in range(32)), reverse=True)
        x = nn.utils.rnn.pad_sequence([torch.randn(count, 80) for count in frames], batch_first=True).cuda()
        lengths = torch.tensor([(count + 1) // 2 for count in frames])
        letters = torch.tensor([draw.randint(40, 150) for _ in frames])
        target = torch.randint(1, 29, (int(letters.sum()),)).cuda()
        loss = loss_of(model(x, lengths), target, lengths, letters)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 400)
        optimizer.step()
        optimizer.zero_grad()
