# SPDX-License-Identifier: Apache-2.0
"""Programs whose memory is compared between a real and a simulated GPU: what people train, small enough for a minute.

Each is a function that makes its models, takes a few steps and leaves the rest to its caller. `settings` of it: variables of the
environment that it needs before PyTorch starts.
"""
import torch
import torch.nn.functional as F
from torch import nn


def registry():
    """A list of programs by name, and the decorator that adds to it: needs is a package that may be missing, settings are variables."""
    programs = {}

    def program(needs=None, **settings):
        def add(function):
            function.needs, function.settings = needs, settings
            programs[function.__name__] = function
            return function
        return add
    return programs, program


PROGRAMS, program = registry()


# --- models --------------------------------------------------------------------------------------


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(y)
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, words=32000, width=768, layers=12, heads=12, checkpoint=False):
        super().__init__()
        self.embed, self.place = nn.Embedding(words, width), nn.Embedding(2048, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head, self.checkpoint = nn.LayerNorm(width), nn.Linear(width, words, bias=False), checkpoint

    def forward(self, ids):
        x = self.embed(ids) + self.place.weight[:ids.shape[1]]
        for block in self.blocks:
            x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False) if self.checkpoint else block(x)
        return self.head(self.norm(x))


class Residual(nn.Module):
    def __init__(self, inside, middle, stride):
        super().__init__()
        outside = 4 * middle
        self.body = nn.Sequential(nn.Conv2d(inside, middle, 1, bias=False), nn.BatchNorm2d(middle), nn.ReLU(True),
                                  nn.Conv2d(middle, middle, 3, stride, 1, bias=False), nn.BatchNorm2d(middle), nn.ReLU(True),
                                  nn.Conv2d(middle, outside, 1, bias=False), nn.BatchNorm2d(outside))
        self.side = nn.Identity()
        if stride != 1 or inside != outside:
            self.side = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        return F.relu(self.body(x) + self.side(x))


def resnet(depths=(3, 4, 6, 3), classes=1000):
    layers, inside = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)], 64
    for stage, depth in enumerate(depths):
        for i in range(depth):
            layers.append(Residual(inside, 64 << stage, 2 if stage and not i else 1))
            inside = 256 << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, classes))


class UNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        def pair(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, 1, 1), nn.GroupNorm(8, b), nn.SiLU(), nn.Conv2d(b, b, 3, 1, 1), nn.SiLU())
        self.down1, self.down2, self.middle = pair(4, width), pair(width, 2 * width), pair(2 * width, 4 * width)
        self.up2, self.up1 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.join2, self.join1, self.out = pair(4 * width, 2 * width), pair(2 * width, width), nn.Conv2d(width, 4, 1)

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.middle(F.max_pool2d(b, 2))
        b = self.join2(torch.cat([self.up2(c), b], 1))
        return self.out(self.join1(torch.cat([self.up1(b), a], 1)))


class LowRank(nn.Module):
    def __init__(self, base, rank=8):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.zeros(rank, base.in_features, device="cuda"))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank, device="cuda"))

    def forward(self, x):
        return self.base(x) + (x @ self.a.T) @ self.b.T


# --- steps ---------------------------------------------------------------------------------------


def words(batch, length, count=32000):
    return torch.randint(0, count, (batch, length)).cuda()


def language(model, ids, optimizer, steps=3, amp=True, parts=1):
    for _ in range(steps):
        for part in ids.chunk(parts):
            with torch.autocast("cuda", torch.bfloat16, enabled=amp):
                loss = F.cross_entropy(model(part).flatten(0, -2), part.flatten())
            (loss / parts).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


def pictures(model, x, target, optimizer, steps=3, amp=False):
    for _ in range(steps):
        with torch.autocast("cuda", torch.bfloat16, enabled=amp):
            loss = F.cross_entropy(model(x), target) if target is not None else F.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


# --- programs ------------------------------------------------------------------------------------


@program()
def decoder_adamw():
    model = Decoder().cuda()
    language(model, words(8, 1024), torch.optim.AdamW(model.parameters()))


@program()
def decoder_fused():
    model = Decoder(width=1024, layers=16, heads=16).cuda()
    language(model, words(8, 1024), torch.optim.AdamW(model.parameters(), fused=True))


@program()
def decoder_fp32_sgd():
    model = Decoder().cuda()
    language(model, words(4, 1024), torch.optim.SGD(model.parameters(), 0.1, momentum=0.9), amp=False)


@program()
def decoder_checkpointed():
    model = Decoder(layers=24, checkpoint=True).cuda()
    language(model, words(16, 1024), torch.optim.AdamW(model.parameters()))


@program()
def decoder_accumulated():
    model = Decoder().cuda()
    language(model, words(16, 512), torch.optim.AdamW(model.parameters()), parts=4)


@program(PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
def decoder_expandable():
    model = Decoder().cuda()
    language(model, words(8, 1024), torch.optim.AdamW(model.parameters()))


@program()
def lora():
    model = Decoder().cuda()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for block in model.blocks:
        block.qkv = LowRank(block.qkv)
        block.out = LowRank(block.out)
    trained = [p for p in model.parameters() if p.requires_grad]
    language(model, words(8, 1024), torch.optim.AdamW(trained))


@program()
def encoder():
    layer = nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True)
    model = nn.Sequential(nn.Embedding(30000, 768), nn.TransformerEncoder(layer, 12), nn.Linear(768, 30000)).cuda()
    language(model, words(16, 256, 30000), torch.optim.Adam(model.parameters()))


@program()
def generation():
    model = Decoder(width=1024, layers=16, heads=16).cuda().bfloat16().eval()
    ids = words(4, 16)
    with torch.no_grad():
        for _ in range(48):
            ids = torch.cat([ids, model(ids)[:, -1].argmax(-1, keepdim=True)], 1)


@program()
def resnet50():
    model = resnet().cuda()
    pictures(model, torch.randn(32, 3, 224, 224).cuda(), torch.zeros(32, dtype=torch.long).cuda(),
             torch.optim.SGD(model.parameters(), 0.1, momentum=0.9))


@program()
def resnet50_channels_last():
    model = resnet().cuda().to(memory_format=torch.channels_last)
    x = torch.randn(64, 3, 224, 224).cuda().to(memory_format=torch.channels_last)
    pictures(model, x, torch.zeros(64, dtype=torch.long).cuda(), torch.optim.SGD(model.parameters(), 0.1, momentum=0.9), amp=True)


@program()
def unet():
    model = UNet().cuda()
    pictures(model, torch.randn(8, 4, 128, 128).cuda(), None, torch.optim.AdamW(model.parameters()), amp=True)


@program()
def vit():
    model = nn.Sequential(nn.Conv2d(3, 768, 16, 16), nn.Flatten(2)).cuda()
    body = nn.Sequential(*(Block(768, 12) for _ in range(12)), nn.Linear(768, 1000)).cuda()
    optimizer = torch.optim.AdamW([*model.parameters(), *body.parameters()])
    x = torch.randn(32, 3, 224, 224).cuda()
    for _ in range(3):
        with torch.autocast("cuda", torch.bfloat16):
            loss = body(model(x).transpose(1, 2)).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@program()
def lstm():
    model, head = nn.LSTM(512, 512, 2).cuda(), nn.Linear(512, 1000).cuda()
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()])
    for _ in range(3):
        head(model(torch.randn(100, 64, 512, device="cuda"))[0]).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


@program()
def graphed():
    model = nn.Sequential(nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 4096)).cuda()
    x = torch.zeros(256, 4096, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            model(x)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(x)
    for _ in range(3):
        graph.replay()
