# SPDX-License-Identifier: Apache-2.0
"""Programs for remedies.py: what applies to each, and what must never be offered to it."""
import collections

# `tried`: what must be tried, and is confirmed. `never`: what would change what the program does. `edited`: what an edit must be shown for, and
# nothing else; None: any that runs. `words`: what is said of the changes.
Program = collections.namedtuple("Program", "text tried never fits_as_it_is edited words", defaults=((), (), True, None, ()))

HEAD = """
import contextlib, sys, torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

WITH = sys.argv[1].split(",")
FOREACH = {"foreach": False} if "foreach" in WITH else {}

def autocast():
    return torch.autocast("cuda", torch.bfloat16) if "bf16" in WITH else contextlib.nullcontext()

def no_grad():
    return torch.no_grad() if "no_grad" in WITH else contextlib.nullcontext()

def run(block, *args):
    return checkpoint(block, *args, use_reentrant=False) if "checkpoint" in WITH else block(*args)

class Residual(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(size), nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))

class Blocks(nn.Module):
    def __init__(self, size, n, out):
        super().__init__()
        self.blocks, self.head = nn.ModuleList(Residual(size) for _ in range(n)), nn.Linear(size, out)

    def forward(self, x):
        for block in self.blocks:
            x = run(block, x)
        return self.head(x)
"""

PROGRAMS = {
    "loop": Program("""
model = Blocks(512, 12, 10).cuda()
optimizer = torch.optim.AdamW(model.parameters(), **FOREACH)
for step in range(20):
    x, y = torch.randn(8192, 512, device="cuda"), torch.randint(10, (8192,), device="cuda")
    optimizer.zero_grad()
    with autocast():
        loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
""", ("foreach", "checkpoint", "bf16", "foreach,checkpoint", "foreach,checkpoint,bf16"), ("no_grad",)),

    "transformer": Program("""
layer = nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
encoder, head, embed = nn.TransformerEncoder(layer, 6).cuda(), nn.Linear(512, 1000).cuda(), nn.Embedding(1000, 512).cuda()

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.encoder, self.head = embed, encoder, head

    def forward(self, x):
        x = self.embed(x)
        for layer in self.encoder.layers:
            x = run(layer, x)
        return self.head(x)

model = Model()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), **FOREACH)
for step in range(20):
    x = torch.randint(1000, (16, 256), device="cuda")
    optimizer.zero_grad()
    with autocast():
        loss = criterion(model(x).flatten(0, 1), x.flatten())
    loss.backward()
    optimizer.step()
""", ("foreach", "checkpoint", "bf16"), ("no_grad",)),

    "residual_network": Program("""
class Basic(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.one, self.two = nn.Conv2d(size, size, 3, padding=1), nn.Conv2d(size, size, 3, padding=1)
        self.norm = nn.GroupNorm(8, size)

    def forward(self, x):
        return F.relu(x + self.two(F.relu(self.norm(self.one(x)))))

class Stack(nn.Sequential):
    def forward(self, x):
        for block in self:
            x = run(block, x)
        return x

model = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3), Stack(*(Basic(64) for _ in range(6))), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, **FOREACH)
for step in range(20):
    x, y = torch.randn(32, 3, 128, 128, device="cuda"), torch.randint(10, (32,), device="cuda")
    optimizer.zero_grad()
    with autocast():
        loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
""", ("checkpoint", "bf16"), ("no_grad",)),

    "no_blocks": Program("""
model = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 3, 3, padding=1)).cuda()
optimizer = torch.optim.Adam(model.parameters(), **FOREACH)
for step in range(20):
    x = torch.randn(32, 3, 128, 128, device="cuda")
    optimizer.zero_grad()
    with autocast():
        loss = F.mse_loss(model(x), x)
    loss.backward()
    optimizer.step()
""", ("foreach", "bf16"), ("no_grad", "checkpoint")),

    "large_optimizer": Program("""
model = nn.ModuleList(nn.Linear(2048, 2048) for _ in range(24)).cuda()
net = nn.Sequential(*model)
optimizer = torch.optim.AdamW(net.parameters(), **FOREACH)
for step in range(20):
    optimizer.zero_grad(set_to_none=False)
    with autocast():
        loss = net(torch.randn(16, 2048, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
""", ("foreach",), ("no_grad",)),

    "inference": Program("""
model = Blocks(1024, 8, 10).cuda().eval()
for i in range(10):
    with no_grad(), autocast():
        y = model(torch.randn(8192, 1024, device="cuda")).argmax(1)
""", ("no_grad", "bf16"), ("foreach", "checkpoint")),

    "validation": Program("""
model = Blocks(512, 8, 10).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1, **FOREACH)

def validate():
    model.eval()
    right = 0
    for _ in range(2):
        with no_grad(), autocast():
            out = model(torch.randn(16384, 512, device="cuda"))
        right += (out.argmax(1) == 0).sum().item()
    model.train()
    return right

for step in range(20):
    optimizer.zero_grad()
    with autocast():
        loss = model(torch.randn(2048, 512, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    if step % 5 == 4:
        validate()
""", ("no_grad",), ()),

    "kept_losses": Program("""
model = Blocks(512, 6, 10).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
losses = []
for step in range(300):
    optimizer.zero_grad()
    model(torch.randn(1024, 512, device="cuda")).square().mean().backward()
    optimizer.step()
    with no_grad():
        losses.append(model(torch.randn(1024, 512, device="cuda")).square().mean())
""", ("no_grad",), (), False, ("no_grad",)),

    "two_networks": Program("""
make, judge = Blocks(256, 6, 256).cuda(), Blocks(256, 6, 1).cuda()
of_make, of_judge = torch.optim.Adam(make.parameters(), **FOREACH), torch.optim.Adam(judge.parameters(), **FOREACH)
for step in range(20):
    z = torch.randn(8192, 256, device="cuda")
    with autocast():
        fake = make(z)
    of_judge.zero_grad()
    with autocast():
        loss = judge(z).mean() - judge(fake.detach()).mean()
    loss.backward()
    of_judge.step()
    of_make.zero_grad()
    with autocast():
        loss = judge(fake).mean()
    loss.backward()
    of_make.step()
""", ("checkpoint", "bf16"), ("no_grad",)),

    "nothing_helps": Program("""
model = nn.Sequential(*(nn.Linear(4096, 4096, dtype=torch.bfloat16, device="cuda") for _ in range(60))).eval()
with torch.no_grad():
    for i in range(5):
        model(torch.randn(16, 4096, dtype=torch.bfloat16, device="cuda"))
""", (), ("no_grad", "bf16", "checkpoint", "foreach")),

    # A network in eval mode whose gradients are needed: by the images that it looks at, by what a hook has taken from its middle.
    "frozen_critic": Program("""
seen = []
critic, model = Blocks(256, 4, 8).cuda().eval().requires_grad_(False), Blocks(256, 4, 256).cuda()
middle = Blocks(256, 4, 8).cuda().eval().requires_grad_(False)
middle.blocks[1].register_forward_hook(lambda module, args, out: seen.append(out))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
with torch.no_grad():
    critic(torch.randn(16, 256, device="cuda"))     # seen first, and not trained
for step in range(20):
    x = torch.randn(4096, 256, device="cuda")
    out = model(x)
    middle(out)
    loss = critic(out).square().mean() + seen.pop().square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""", (), ("no_grad",), words=("activation checkpointing of 4 Residual",)),

    # Losses of several batches, summed, and passed to backward together.
    "summed_losses": Program("""
model = Blocks(256, 4, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
total = 0
for step in range(80):
    total = total + model(torch.randn(1024, 256, device="cuda")).square().mean()
    if step % 4 == 3:
        optimizer.zero_grad()
        (total / 4).backward()
        optimizer.step()
        total = 0
""", (), ("no_grad",)),

    # What checkpointing has computed again is no call that backward never reaches, and it is not done twice.
    "checkpointed": Program("""
WITH.append("checkpoint")
model = Blocks(512, 12, 10).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(20):
    optimizer.zero_grad()
    model(torch.randn(8192, 512, device="cuda")).square().mean().backward()
    optimizer.step()
""", (), ("no_grad", "checkpoint")),

    # Code as people write it: the edits.
    "edits": Program("""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Residual(512) for _ in range(12))
        self.head = nn.Linear(512, 10)

    def forward(self, x):
        for i, block in enumerate(self.blocks):
            x = block(x)
        return self.head(x)

model = Net().cuda()
optimizer = torch.optim.AdamW(
    model.parameters(),
    lr=1e-3,
)

def train():
    for step in range(20):
        x, y = torch.randn(8192, 512, device="cuda"), torch.randint(10, (8192,), device="cuda")
        optimizer.zero_grad()
        out = model(x)
        loss = F.cross_entropy(out, y)
        loss.backward()
        optimizer.step()

train()
""", edited=("checkpoint", "bf16")),

    "edited_optimizer": Program("""
net = nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(24))).cuda()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.1)  # as in the paper
for step in range(20):
    optimizer.zero_grad(set_to_none=False)
    net(torch.randn(16, 2048, device="cuda")).square().mean().backward()
    optimizer.step()
""", edited=("foreach",)),

    "edited_validation": Program("""
model = Blocks(512, 8, 10).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)

def validate():
    model.eval()
    total = 0.0
    for _ in range(2):
        x = torch.randn(16384, 512, device="cuda")
        out = model(
            x,
        )
        total += out.square().mean().item()
    model.train()
    return total

for step in range(20):
    optimizer.zero_grad()
    model(torch.randn(2048, 512, device="cuda")).square().mean().backward()
    optimizer.step()
    if step % 5 == 4:
        validate()
""", edited=("no_grad",)),

    # The model's line calls backward as well; the blocks are called by PyTorch; another file's text is not known: no edit.
    "not_edited": Program("""
class Two(nn.Sequential):
    pass

model = nn.Sequential(*(Two(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)) for _ in range(12))).cuda()
arguments = dict(lr=0.1)
optimizer = getattr(torch.optim, "Adam")(model.parameters(), **arguments)
for step in range(20):
    optimizer.zero_grad()
    model(torch.randn(8192, 512, device="cuda")).square().mean().backward()
    optimizer.step()
""", edited=()),
}

# One that is too large for 1300 MiB, and whose batch is a number in its file, or a word of its command.
BATCH = HEAD + """
BATCH = %s
model = nn.Sequential(*(nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(12))).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
data = torch.utils.data.TensorDataset(torch.randn(40960, 1024))
for (x,) in torch.utils.data.DataLoader(data, batch_size=BATCH):
    optimizer.zero_grad()
    model(x.cuda()).square().mean().backward()
    optimizer.step()
"""
