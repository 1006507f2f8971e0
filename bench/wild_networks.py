"""wild_networks.py: networks that torchvision does not have, for wild_export.py."""

import torch
import torch.nn.functional as F
from torch import nn


def conv_block(channels, filters, conv=nn.Conv2d, norm=nn.BatchNorm2d, **window):
    window = {"kernel_size": 3, "padding": 1, **window}
    return nn.Sequential(conv(channels, filters, bias=False, **window), norm(filters), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, width=24, depth=3):
        super().__init__()
        widths = [width << i for i in range(depth + 1)]
        self.down = nn.ModuleList(
            nn.Sequential(conv_block(before, after), conv_block(after, after))
            for before, after in zip([3] + widths, widths))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in reversed(widths[:-1]))
        self.join = nn.ModuleList(
            nn.Sequential(conv_block(2 * w, w), conv_block(w, w)) for w in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        kept = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else F.max_pool2d(x, 2))
            kept.append(x)
        for up, join, beside in zip(self.up, self.join, reversed(kept[:-1])):
            x = join(torch.cat([up(x), beside], 1))
        return self.head(x)


class Attention(nn.Module):
    """scaled: through scaled_dot_product_attention, else written out as older models do."""

    def __init__(self, width, heads, scaled):
        super().__init__()
        self.heads, self.scaled = heads, scaled
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, mask=None, past=None, causal=False):
        n, length, width = x.shape
        q, k, v = (part.view(n, -1, self.heads, width // self.heads).transpose(1, 2)
                   for part in self.qkv(x).chunk(3, -1))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        if self.scaled:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        else:
            scores = q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5
            y = (scores if mask is None else scores + mask).softmax(-1) @ v
        return self.out(y.transpose(1, 2).reshape(n, length, width)), (k, v)


class Block(nn.Module):
    def __init__(self, width, heads, scaled, first):
        super().__init__()
        self.first = first  # the normalization stands before what it belongs to
        self.attention = Attention(width, heads, scaled)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, mask=None, past=None):
        if self.first:
            y, cache = self.attention(self.norms[0](x), mask, past)
            x = x + y
            return x + self.mlp(self.norms[1](x)), cache
        y, cache = self.attention(x, mask, past)
        x = self.norms[0](x + y)
        return self.norms[1](x + self.mlp(x)), cache


class Bert(nn.Module):
    def __init__(self, scaled, width=256, heads=4, layers=4, words=4000, most=128):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(most, width)
        self.norm = nn.LayerNorm(width)
        self.blocks = nn.ModuleList(Block(width, heads, scaled, False) for _ in range(layers))
        self.head = nn.Linear(width, 5)

    def forward(self, ids, mask):
        x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1])))
        shown = (1.0 - mask[:, None, None, :].float()) * -10000.0
        for block in self.blocks:
            x, _ = block(x, shown)
        return self.head(torch.tanh(x[:, 0]))


class Gpt(nn.Module):
    """One step: the new word's scores, and the cache with it."""

    def __init__(self, width=256, heads=4, layers=4, words=4000, most=128):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(most, width)
        self.blocks = nn.ModuleList(Block(width, heads, True, True) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, ids, past):
        x = self.words(ids) + self.places(torch.arange(1) + past.shape[4])
        caches = []
        for i, block in enumerate(self.blocks):
            x, cache = block(x, None, (past[i, 0], past[i, 1]))
            caches.append(torch.stack(cache))
        return self.head(self.norm(x)), torch.stack(caches)


class Text(nn.Module):
    def __init__(self, layer, width=128, words=2000):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.layer = layer(width, width, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, 4)

    def forward(self, ids):
        return self.head(self.layer(self.words(ids))[0].mean(1))


class Audio(nn.Module):
    """Dilated 1-D convolutions with residuals on raw sound."""

    def __init__(self, width=64, blocks=4):
        super().__init__()
        one = {"conv": nn.Conv1d, "norm": nn.BatchNorm1d}
        self.stem = conv_block(1, width, **one, kernel_size=80, stride=4, padding=38)
        self.blocks = nn.ModuleList(
            nn.Sequential(conv_block(width, width, **one, dilation=1 << i, padding=1 << i),
                          nn.Conv1d(width, width, 1)) for i in range(blocks))
        self.head = nn.Linear(width, 35)

    def forward(self, x):
        x = F.max_pool1d(self.stem(x), 4)
        for block in self.blocks:
            x = F.relu(x + block(x))
        return self.head(x.mean(-1))


class SuperResolution(nn.Module):
    def __init__(self, scale=3):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 64, 5, padding=2), nn.Tanh(), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(),
            nn.Conv2d(64, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, scale ** 2, 3, padding=1),
            nn.PixelShuffle(scale))

    def forward(self, x):
        return self.body(x)


class Video(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        three = {"conv": nn.Conv3d, "norm": nn.BatchNorm3d}
        self.stem = conv_block(3, width, **three, kernel_size=(3, 7, 7), stride=(1, 2, 2),
                               padding=(1, 3, 3))
        self.body = nn.Sequential(
            conv_block(width, width, **three), conv_block(width, 2 * width, **three, stride=2),
            conv_block(2 * width, 2 * width, **three), conv_block(2 * width, 4 * width, **three, stride=2),
            conv_block(4 * width, 4 * width, **three))
        self.head = nn.Linear(4 * width, 20)

    def forward(self, x):
        return self.head(self.body(self.stem(x)).mean((2, 3, 4)))


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class LlamaBlock(nn.Module):
    """Turned positions, two queries to a key, a gated product."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.norms = nn.ModuleList(RmsNorm(width) for _ in range(2))
        self.q, self.out = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(width, width // 2, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, 3 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(3 * width, width, bias=False)

    def split(self, x):
        return x.view(x.shape[0], x.shape[1], -1, self.size).transpose(1, 2)

    def forward(self, x, cos, sin):
        def turned(y):
            a, b = y.chunk(2, -1)
            return y * cos + torch.cat([-b, a], -1) * sin

        y = self.norms[0](x)
        q, k, v = turned(self.split(self.q(y))), turned(self.split(self.k(y))), self.split(self.v(y))
        k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        y = self.norms[1](x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, width=256, heads=4, layers=4, words=4000):
        super().__init__()
        self.size = width // heads
        self.words = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads) for _ in range(layers))
        self.norm, self.head = RmsNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, ids):
        speeds = 10000 ** (-torch.arange(0, self.size, 2) / self.size)
        angles = torch.arange(ids.shape[1])[:, None] * speeds[None]
        angles = torch.cat([angles, angles], -1)
        x = self.words(ids)
        for block in self.blocks:
            x = block(x, angles.cos(), angles.sin())
        return self.head(self.norm(x))


class Whisper(nn.Module):
    """Spectra through two convolutions into a transformer."""

    def __init__(self, width=256, heads=4, layers=3, bands=80, steps=200):
        super().__init__()
        self.stem = nn.ModuleList([nn.Conv1d(bands, width, 3, padding=1),
                                   nn.Conv1d(width, width, 3, stride=2, padding=1)])
        self.places = nn.Parameter(torch.randn(steps // 2, width) * 0.1)
        self.blocks = nn.ModuleList(Block(width, heads, True, True) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        for layer in self.stem:
            x = F.gelu(layer(x))
        x = x.transpose(1, 2) + self.places
        for block in self.blocks:
            x, _ = block(x)
        return self.norm(x)


class Residual(nn.Module):
    """Of a diffusion network: norms of groups, SiLU, the time in between."""

    def __init__(self, channels, filters, time):
        super().__init__()
        self.norms = nn.ModuleList([nn.GroupNorm(8, channels), nn.GroupNorm(8, filters)])
        self.convs = nn.ModuleList([nn.Conv2d(channels, filters, 3, padding=1),
                                    nn.Conv2d(filters, filters, 3, padding=1)])
        self.time = nn.Linear(time, filters)
        self.around = nn.Conv2d(channels, filters, 1) if channels != filters else nn.Identity()

    def forward(self, x, time):
        y = self.convs[0](F.silu(self.norms[0](x))) + self.time(F.silu(time))[:, :, None, None]
        return self.convs[1](F.silu(self.norms[1](y))) + self.around(x)


class Diffusion(nn.Module):
    def __init__(self, width=32, time=128):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(32, time), nn.SiLU(), nn.Linear(time, time))
        self.stem, self.head = nn.Conv2d(4, width, 3, padding=1), nn.Conv2d(width, 4, 3, padding=1)
        self.down = nn.ModuleList([Residual(width, width, time), Residual(width, 2 * width, time)])
        self.shrink = nn.ModuleList(nn.Conv2d(w, w, 3, 2, 1) for w in (width, 2 * width))
        self.middle = nn.ModuleList(Residual(2 * width, 2 * width, time) for _ in range(2))
        self.norm, self.attention = nn.GroupNorm(8, 2 * width), Attention(2 * width, 4, True)
        self.up = nn.ModuleList([Residual(4 * width, width, time), Residual(2 * width, width, time)])
        self.last = nn.GroupNorm(8, width)

    def forward(self, x, t):
        angles = t[:, None] * torch.exp(torch.linspace(0, -7, 16))
        time = self.time(torch.cat([angles.sin(), angles.cos()], -1))
        x, kept = self.stem(x), []
        for block, shrink in zip(self.down, self.shrink):
            x = block(x, time)
            kept.append(x)
            x = shrink(x)
        x = self.middle[0](x, time)
        y, _ = self.attention(self.norm(x).flatten(2).transpose(1, 2))
        x = self.middle[1](x + y.transpose(1, 2).reshape(x.shape), time)
        for block, beside in zip(self.up, reversed(kept)):
            x = block(torch.cat([F.interpolate(x, scale_factor=2.0), beside], 1), time)
        return self.head(F.silu(self.last(x)))


class Style(nn.Module):
    """Pictures in another style: norms of instances, reflected edges."""

    def __init__(self, width=32, blocks=3):
        super().__init__()

        def layer(channels, filters, size, stride=1):
            return nn.Sequential(nn.ReflectionPad2d(size // 2), nn.Conv2d(channels, filters, size, stride),
                                 nn.InstanceNorm2d(filters, affine=True))

        self.down = nn.Sequential(layer(3, width, 9), nn.ReLU(), layer(width, 2 * width, 3, 2), nn.ReLU(),
                                  layer(2 * width, 4 * width, 3, 2), nn.ReLU())
        self.blocks = nn.ModuleList(nn.Sequential(layer(4 * width, 4 * width, 3), nn.ReLU(),
                                                  layer(4 * width, 4 * width, 3)) for _ in range(blocks))
        self.up = nn.ModuleList([layer(4 * width, 2 * width, 3), layer(2 * width, width, 3)])
        self.head = nn.Sequential(nn.ReflectionPad2d(4), nn.Conv2d(width, 3, 9))

    def forward(self, x):
        x = self.down(x)
        for block in self.blocks:
            x = x + block(x)
        for layer in self.up:
            x = F.relu(layer(F.interpolate(x, scale_factor=2.0, mode="nearest")))
        return self.head(x)


class Crnn(nn.Module):
    """Reads a line of text: convolutions, then an LSTM along the line."""

    def __init__(self, letters=97):
        super().__init__()
        self.body = nn.Sequential(conv_block(1, 32), nn.MaxPool2d(2), conv_block(32, 64), nn.MaxPool2d(2),
                                  conv_block(64, 128), nn.MaxPool2d((2, 1)), conv_block(128, 128),
                                  nn.MaxPool2d((4, 1)))
        self.layer = nn.LSTM(128, 128, bidirectional=True)
        self.head = nn.Linear(256, letters)

    def forward(self, x):
        x = self.body(x).squeeze(2).permute(2, 0, 1)
        return self.head(self.layer(x)[0]).log_softmax(-1)


class Vocoder(nn.Module):
    """Sound from spectra: transposed 1-D convolutions with dilated ones between them."""

    def __init__(self, bands=80, width=128):
        super().__init__()
        self.stem = nn.Conv1d(bands, width, 7, padding=3)
        self.up = nn.ModuleList(nn.ConvTranspose1d(width >> i, width >> i + 1, 16, 8, 4) for i in range(2))
        self.blocks = nn.ModuleList(
            nn.ModuleList(nn.Conv1d(width >> i + 1, width >> i + 1, 3, padding=d, dilation=d) for d in (1, 3, 5))
            for i in range(2))
        self.head = nn.Conv1d(width >> 2, 1, 7, padding=3)

    def forward(self, x):
        x = self.stem(x)
        for up, block in zip(self.up, self.blocks):
            x = up(F.leaky_relu(x, 0.1))
            for layer in block:
                x = x + layer(F.leaky_relu(x, 0.1))
        return torch.tanh(self.head(F.leaky_relu(x)))


class Mixer(nn.Module):
    def __init__(self, width=256, patch=16, size=224, layers=4):
        super().__init__()
        patches = (size // patch) ** 2
        self.stem = nn.Conv2d(3, width, patch, patch)

        def mlp(n, hidden):
            return nn.Sequential(nn.Linear(n, hidden), nn.GELU(), nn.Linear(hidden, n))

        self.across = nn.ModuleList(mlp(patches, 2 * width) for _ in range(layers))
        self.along = nn.ModuleList(mlp(width, 4 * width) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * layers))
        self.head = nn.Linear(width, 100)

    def forward(self, x):
        x = self.stem(x).flatten(2).transpose(1, 2)
        for i, (across, along) in enumerate(zip(self.across, self.along)):
            x = x + across(self.norms[2 * i](x).transpose(1, 2)).transpose(1, 2)
            x = x + along(self.norms[2 * i + 1](x))
        return self.head(x.mean(1))


class Points(nn.Module):
    """Classes of a cloud of points."""

    def __init__(self):
        super().__init__()
        one = {"conv": nn.Conv1d, "norm": nn.BatchNorm1d, "kernel_size": 1, "padding": 0}
        self.body = nn.Sequential(conv_block(3, 64, **one), conv_block(64, 128, **one), conv_block(128, 512, **one))
        self.head = nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 40))

    def forward(self, x):
        return self.head(self.body(x).max(-1)[0])


class Wavenet(nn.Module):
    def __init__(self, width=64, layers=6):
        super().__init__()
        self.stem = nn.Conv1d(1, width, 1)
        self.both = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=1 << i) for i in range(layers))
        self.out = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(layers))
        self.head = nn.Sequential(nn.ReLU(), nn.Conv1d(width, width, 1), nn.ReLU(), nn.Conv1d(width, 64, 1))

    def forward(self, x):
        x, total = self.stem(x), 0
        for i, (both, out) in enumerate(zip(self.both, self.out)):
            a, b = both(F.pad(x, (1 << i, 0))).chunk(2, 1)
            y = out(torch.tanh(a) * torch.sigmoid(b))
            x, total = x + y, total + y
        return self.head(total)


class Detr(nn.Module):
    """nn.Transformer, encoder and decoder, behind a small backbone."""

    def __init__(self, width=128, questions=50):
        super().__init__()
        self.body = nn.Sequential(conv_block(3, 32, stride=2), conv_block(32, 64, stride=2),
                                  conv_block(64, 128, stride=2), conv_block(128, width, stride=2))
        self.places = nn.Parameter(torch.randn(100, 1, width) * 0.1)
        self.questions = nn.Parameter(torch.randn(questions, 1, width))
        self.both = nn.Transformer(width, 4, 2, 2, 4 * width, dropout=0)
        self.classes, self.boxes = nn.Linear(width, 21), nn.Linear(width, 4)

    def forward(self, x):
        x = self.body(x).flatten(2).permute(2, 0, 1) + self.places
        x = self.both(x, self.questions.expand(-1, x.shape[1], -1))
        return self.classes(x), self.boxes(x).sigmoid()


class Encoder(nn.Module):
    """nn.TransformerEncoder as tutorials have it, on numbers that were measured."""

    def __init__(self, width=128):
        super().__init__()
        self.stem = nn.Linear(16, width)
        self.body = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True, dropout=0), 3)
        self.head = nn.Linear(width, 8)

    def forward(self, x):
        return self.head(self.body(self.stem(x))[:, -1])
