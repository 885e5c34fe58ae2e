# SPDX-License-Identifier: Apache-2.0
"""What programs are about: models as people write them, their data, and roughly how much memory a sample takes.

A task is text with $names for what the rest of the program decides: $model, $opt, $x, $y, $out, $loss, $batch, $device. A line may end with
a mark, "#@forward": marks become labels (memory_programs.py) and never appear in a program. Figures are bytes per sample, measured on the
simulated GPU; programs are made with so much room on both sides that 30 % do not matter.
"""
import textwrap


class Task:
    """One model and its data. `graph`: bytes that autograd keeps of a sample; `light`: those of a pass without gradients;
    `result`: bytes of its output; `params`: bytes of all weights."""

    simple = True       # one model, one optimizer, one loss: any loop can run it
    criterion = "F.cross_entropy($out, $y)"
    classes = ""
    extra = ()          # more state: (name, expression)
    before = ()         # lines of a step before the forward pass

    def __init__(self, dice):
        self.dice = dice
        self.choose(dice)
        self.classes = textwrap.dedent(self.classes).strip("\n")

    def forward(self):
        return ["$out = $model($x)  #@forward", "$loss = %s  #@loss" % self.criterion]

    def data(self):
        """Two expressions: what the model is given, and what the loss compares its output with."""
        return self.inputs, self.targets


class Mlp(Task):
    name = "mlp"
    classes = '''
    class Classifier(nn.Module):
        def __init__(self, features, hidden, classes, depth):
            super().__init__()
            layers = [nn.Linear(features, hidden), nn.GELU()]
            for _ in range(depth):
                layers += [nn.Linear(hidden, hidden), nn.GELU(), nn.Dropout(0.1)]
            self.body = nn.Sequential(*layers)
            self.head = nn.Linear(hidden, classes)

        def forward(self, x):
            x = self.body(x)  #@inner
            return self.head(x)  #@result
    '''

    def choose(self, dice):
        f, h, c, d = dice.choice((256, 512, 784)), dice.choice((512, 1024, 1536)), dice.choice((100, 1000)), dice.randint(3, 10)
        self.build = "Classifier(%d, %d, %d, depth=%d)" % (f, h, c, d)
        self.inputs, self.targets = "torch.randn($batch, %d, device=$device)" % f, "torch.randint(0, %d, ($batch,), device=$device)" % c
        self.graph, self.result, self.params = 4 * (f + 2 * h + d * 2.25 * h + 2 * c), 4 * c, 4 * (f * h + d * h * h + h * c)
        self.light = 4 * (2 * h + f + c)


class Cnn(Task):
    name = "cnn"
    classes = '''
    class ConvBlock(nn.Module):
        def __init__(self, cin, cout):
            super().__init__()
            self.conv = nn.Conv2d(cin, cout, 3, padding=1)
            self.bn = nn.BatchNorm2d(cout)

        def forward(self, x):
            return F.relu(self.bn(self.conv(x)))


    class ImageNet(nn.Module):
        def __init__(self, width, depth, classes):
            super().__init__()
            self.stem = ConvBlock(3, width)
            self.blocks = nn.ModuleList([ConvBlock(width, width) for _ in range(depth)])
            self.fc = nn.Linear(width, classes)

        def forward(self, img):
            h = self.stem(img)
            for block in self.blocks:
                h = block(h)  #@inner
            return self.fc(h.mean((2, 3)))  #@result
    '''

    def choose(self, dice):
        w, d, c, s = dice.choice((32, 48, 64)), dice.randint(3, 8), dice.choice((10, 200, 1000)), dice.choice((64, 96, 128))
        self.build = "ImageNet(width=%d, depth=%d, classes=%d)" % (w, d, c)
        self.inputs = "torch.randn($batch, 3, %d, %d, device=$device)" % (s, s)
        self.targets = "torch.randint(0, %d, ($batch,), device=$device)" % c
        self.graph, self.result, self.params = 4 * s * s * (3 + (d + 1) * 2 * w), 4 * c, 4 * d * w * w * 9
        self.light = 4 * s * s * 4 * w


class Encoder(Task):
    name = "encoder"
    classes = '''
    class TextEncoder(nn.Module):
        def __init__(self, vocab, dim, heads, layers):
            super().__init__()
            self.tokens = nn.Embedding(vocab, dim)
            layer = nn.TransformerEncoderLayer(dim, heads, 4 * dim, batch_first=True, norm_first=True)
            self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
            self.norm = nn.LayerNorm(dim)

        def forward(self, ids):
            hidden = self.encoder(self.tokens(ids))  #@inner
            return self.norm(hidden)  #@result
    '''
    criterion = "F.mse_loss($out.mean(1), $y)"

    def choose(self, dice):
        d, n, t = dice.choice((256, 384, 512)), dice.randint(3, 8), dice.choice((128, 256, 384))
        self.build = "TextEncoder(vocab=%d, dim=%d, heads=%d, layers=%d)" % (dice.choice((8000, 16000, 30522)), d, d // 64, n)
        self.inputs, self.targets = "torch.randint(0, 8000, ($batch, %d)).to($device)" % t, "torch.randn($batch, %d, device=$device)" % d
        self.graph, self.result, self.params = 4 * t * d * (2 + 19.5 * n), 4 * t * d, 4 * (30000 * d + n * 12 * d * d)
        self.light = 4 * t * d * 10


class Gpt(Task):
    name = "gpt"
    classes = '''
    class Attention(nn.Module):
        def __init__(self, dim, heads):
            super().__init__()
            self.heads = heads
            self.qkv = nn.Linear(dim, 3 * dim)
            self.proj = nn.Linear(dim, dim)

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.proj(y.transpose(1, 2).reshape(b, t, d))


    class Block(nn.Module):
        def __init__(self, dim, heads):
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
            self.attn = Attention(dim, heads)
            self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

        def forward(self, x):
            x = x + self.attn(self.ln1(x))
            return x + self.mlp(self.ln2(x))


    class MiniGPT(nn.Module):
        def __init__(self, vocab, dim, heads, layers, context):
            super().__init__()
            self.wte = nn.Embedding(vocab, dim)
            self.wpe = nn.Embedding(context, dim)
            self.blocks = nn.ModuleList([Block(dim, heads) for _ in range(layers)])
            self.ln_f = nn.LayerNorm(dim)
            self.lm_head = nn.Linear(dim, vocab, bias=False)

        def forward(self, idx):
            pos = torch.arange(idx.shape[1], device=idx.device)
            x = self.wte(idx) + self.wpe(pos)
            for block in self.blocks:
                x = block(x)  #@inner
            return self.lm_head(self.ln_f(x))  #@result
    '''

    criterion = "F.cross_entropy($out.flatten(0, 1), $y.flatten())"

    def choose(self, dice):
        v, d, n, t = dice.choice((2000, 5000, 8000)), dice.choice((256, 384, 512)), dice.randint(3, 8), dice.choice((128, 256, 512))
        self.build = "MiniGPT(vocab=%d, dim=%d, heads=%d, layers=%d, context=%d)" % (v, d, d // 64, n, t)
        self.inputs = self.targets = "torch.randint(0, %d, ($batch, %d)).to($device)" % (v, t)
        self.graph, self.result, self.params = 4 * t * (d * (2 + 16 * n) + 2 * v), 4 * t * v, 4 * (2 * v * d + n * 12 * d * d)
        self.light = 4 * t * max(10 * d, v + d)


class Rnn(Task):
    name = "rnn"
    classes = '''
    class SequenceModel(nn.Module):
        def __init__(self, features, hidden):
            super().__init__()
            self.hidden = hidden
            self.cell = nn.GRUCell(features, hidden)
            self.readout = nn.Linear(hidden, features)

        def forward(self, seq):
            h = seq.new_zeros(seq.shape[0], self.hidden)
            outputs = []
            for t in range(seq.shape[1]):
                h = self.cell(seq[:, t], h)  #@inner
                outputs.append(self.readout(h))  #@result
            return torch.stack(outputs, dim=1)  #@result
    '''
    criterion = "F.mse_loss($out, $y)"

    def choose(self, dice):
        f, h, t = dice.choice((32, 64, 128)), dice.choice((256, 512, 1024)), dice.choice((24, 40, 64))
        self.build = "SequenceModel(%d, %d)" % (f, h)
        self.inputs = self.targets = "torch.randn($batch, %d, %d, device=$device)" % (t, f)
        self.graph, self.result, self.params = 4 * t * (12 * h + 6 * f), 4 * t * f, 4 * (3 * h * (f + h) + h * f)
        self.light = 4 * (3 * t * f + 10 * h)


class Unet(Task):
    name = "unet"
    classes = '''
    def double_conv(cin, cout):
        return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU(),
                             nn.Conv2d(cout, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU())


    class UNet(nn.Module):
        def __init__(self, base, classes):
            super().__init__()
            self.down1, self.down2 = double_conv(1, base), double_conv(base, 2 * base)
            self.middle = double_conv(2 * base, 4 * base)
            self.up2, self.up1 = double_conv(6 * base, 2 * base), double_conv(3 * base, base)
            self.final = nn.Conv2d(base, classes, 1)

        def forward(self, image):
            a = self.down1(image)  #@inner
            b = self.down2(F.max_pool2d(a, 2))
            m = self.middle(F.max_pool2d(b, 2))
            u = self.up2(torch.cat([F.interpolate(m, scale_factor=2), b], 1))
            u = self.up1(torch.cat([F.interpolate(u, scale_factor=2), a], 1))
            return self.final(u)  #@result
    '''

    def choose(self, dice):
        b, c, s = dice.choice((16, 24, 32)), dice.choice((4, 12, 21)), dice.choice((96, 128, 160))
        self.build = "UNet(base=%d, classes=%d)" % (b, c)
        self.inputs = "torch.randn($batch, 1, %d, %d, device=$device)" % (s, s)
        self.targets = "torch.randint(0, %d, ($batch, %d, %d), device=$device)" % (c, s, s)
        self.graph, self.result, self.params = 4 * s * s * (b * 20 + 3 * c), 4 * s * s * c, 4 * 9 * 60 * b * b
        self.light = 4 * s * s * 10 * b


class Autoencoder(Task):
    name = "autoencoder"
    classes = '''
    class Autoencoder(nn.Module):
        def __init__(self, channels, latent):
            super().__init__()
            self.encoder = nn.Sequential(
                nn.Conv2d(3, channels, 4, stride=2, padding=1), nn.SiLU(),
                nn.Conv2d(channels, 2 * channels, 4, stride=2, padding=1), nn.SiLU(),
                nn.Conv2d(2 * channels, latent, 3, padding=1))
            self.decoder = nn.Sequential(
                nn.ConvTranspose2d(latent, 2 * channels, 4, stride=2, padding=1), nn.SiLU(),
                nn.ConvTranspose2d(2 * channels, channels, 4, stride=2, padding=1), nn.SiLU(),
                nn.Conv2d(channels, 3, 3, padding=1))

        def forward(self, x):
            z = self.encoder(x)  #@inner
            return self.decoder(z)  #@result
    '''
    criterion = "F.mse_loss($out, $x)"

    def choose(self, dice):
        c, s = dice.choice((32, 64, 96)), dice.choice((64, 96, 128))
        self.build = "Autoencoder(%d, %d)" % (c, dice.choice((8, 16, 32)))
        self.inputs, self.targets = "torch.rand($batch, 3, %d, %d, device=$device)" % (s, s), "torch.arange($batch)"
        self.graph, self.result, self.params = 4 * s * s * (6 + c * (0.5 + 0.25 + 1 + 2)), 4 * s * s * 3, 4 * 16 * 8 * c * c
        self.light = 4 * s * s * 3 * c


class Detector(Task):
    name = "detector"
    classes = '''
    class Detector(nn.Module):
        def __init__(self, width, anchors, classes):
            super().__init__()
            self.backbone = nn.Sequential(
                nn.Conv2d(3, width, 3, stride=2, padding=1), nn.LeakyReLU(0.1),
                nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.LeakyReLU(0.1),
                nn.Conv2d(2 * width, 2 * width, 3, padding=1), nn.LeakyReLU(0.1))
            self.boxes = nn.Conv2d(2 * width, 4 * anchors, 1)
            self.scores = nn.Conv2d(2 * width, classes * anchors, 1)

        def forward(self, images):
            fmap = self.backbone(images)  #@inner
            boxes, scores = self.boxes(fmap), self.scores(fmap)
            return torch.cat([boxes.flatten(1), scores.flatten(1)], dim=1)  #@result
    '''
    criterion = "F.smooth_l1_loss($out, torch.zeros_like($out))"

    def choose(self, dice):
        w, a, c, s = dice.choice((24, 32, 48)), dice.choice((3, 6, 9)), dice.choice((5, 20)), dice.choice((128, 192, 256))
        self.build = "Detector(width=%d, anchors=%d, classes=%d)" % (w, a, c)
        self.inputs, self.targets = "torch.rand($batch, 3, %d, %d, device=$device)" % (s, s), "torch.arange($batch)"
        self.result = 4 * s * s // 16 * a * (4 + c)
        self.graph, self.params = 4 * s * s * (3 + w * (0.5 + 0.5)) + 2 * self.result, 4 * 9 * 8 * w * w
        self.light = 4 * s * s * (3 + w / 2) + self.result


class Embeddings(Task):
    name = "recommender"
    classes = '''
    class Recommender(nn.Module):
        def __init__(self, users, items, dim):
            super().__init__()
            self.users = nn.Embedding(users, dim)
            self.items = nn.Embedding(items, dim)
            self.tower = nn.Sequential(nn.Linear(2 * dim, 4 * dim), nn.ReLU(), nn.Linear(4 * dim, dim), nn.ReLU(), nn.Linear(dim, 1))

        def forward(self, pairs):
            both = torch.cat([self.users(pairs[:, 0]), self.items(pairs[:, 1])], dim=1)
            return self.tower(both).squeeze(1)  #@result  #@inner
    '''
    criterion = "F.binary_cross_entropy_with_logits($out, $y)"

    def choose(self, dice):
        d, n = dice.choice((64, 128, 256)), dice.choice((50000, 200000))
        self.build = "Recommender(users=%d, items=%d, dim=%d)" % (n, n // 4, d)
        self.inputs, self.targets = "torch.randint(0, 10000, ($batch, 2), device=$device)", "torch.rand($batch, device=$device)"
        self.graph, self.result, self.params = 4 * (7 * d + 8), 4, 4 * n * d * 1.25
        self.light = 4 * 10 * d


class Gan(Task):
    name = "gan"
    simple = False
    classes = '''
    class Generator(nn.Module):
        def __init__(self, noise, width, pixels):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(noise, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2),
                                     nn.Linear(width, pixels), nn.Tanh())

        def forward(self, z):
            return self.net(z)  #@result  #@inner


    class Critic(nn.Module):
        def __init__(self, width, pixels):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(pixels, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2), nn.Linear(width, 1))

        def forward(self, image):
            return self.net(image)
    '''

    def choose(self, dice):
        w, p = dice.choice((512, 1024)), dice.choice((784, 3072))
        self.build = "Generator(128, %d, %d)" % (w, p)
        self.extra = (("critic", "Critic(%d, %d).to($device)" % (w, p)),
                      ("opt_critic", "torch.optim.Adam($critic.parameters(), lr=2e-4, betas=(0.5, 0.999))"))
        self.inputs, self.targets = "torch.randn($batch, 128, device=$device)", "torch.rand($batch, %d, device=$device)" % p
        self.before = ("fake = $model($x).detach()",
                       "critic_loss = F.softplus($critic(fake)).mean() + F.softplus(-$critic($y)).mean()",
                       "$opt_critic.zero_grad()", "critic_loss.backward()", "$opt_critic.step()")
        self.graph, self.result, self.params = 4 * (4 * w + 3 * p), 4 * p, 8 * (w * w + w * p)
        self.light = 4 * (w + 2 * p)

    def forward(self):
        return ["$out = $model($x)  #@forward", "$loss = F.softplus(-$critic($out)).mean()  #@loss"]


TASKS = (Mlp, Cnn, Encoder, Gpt, Rnn, Unet, Autoencoder, Detector, Embeddings, Gan)
