"""make.py [CASE...]: the golden cases, made by torch 2.15.0 and torchvision 0.29.2 (see the table in docs/import.md). Each row of CASES is a
module with its inputs and the forms that it is saved in: `pt2` (torch.export as it comes), `core` (decomposed to core
operators), `script` and `trace` (TorchScript). Files are packed again with deflate, without debug information and sample
inputs; a case named `*_stored` is left as torch wrote it."""

import io
import os
import sys
import warnings
from typing import List

import numpy as np
import torch
import torch.nn.functional as F
import torchvision
from pack import pack
from torch import nn
from torch.export import Dim

warnings.filterwarnings("ignore")
CASES_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases")
BATCH = Dim("batch", min=2, max=1024)
torch.manual_seed(0)
PT2, CORE, SCRIPT, TRACE = "pt2", "core", "script", "trace"


class Do(nn.Module):
    """A module that does what the function does."""

    def __init__(self, function, *modules):
        super().__init__()
        self.function = function
        self.parts = nn.ModuleList(modules)

    def forward(self, *inputs):
        return self.function(*inputs, *self.parts)


def r(*shape):
    return torch.randn(*shape)


def u(*shape):
    """In (0.05, 0.95)."""
    return torch.rand(*shape) * 0.9 + 0.05


def ints(high, *shape):
    return torch.randint(0, high, shape)


def normed(module, inputs):
    """Running statistics that are not 0 and 1."""
    module.train()
    with torch.no_grad():
        for _ in range(3):
            module(*[x * 2 + 0.5 if x.is_floating_point() else x for x in inputs])
    return module.eval()


class Conv1d(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv1d(3, 6, 3, stride=2, padding=1)
        self.b = nn.Conv1d(6, 6, 3, dilation=2, groups=3, bias=False)
        self.up = nn.ConvTranspose1d(6, 4, 4, stride=2, padding=1)

    def forward(self, x):
        return self.up(F.relu(self.b(F.relu(self.a(x)))))


class Conv2d(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 8, (3, 5), stride=(2, 1), padding=(1, 2))
        self.b = nn.Conv2d(8, 8, 3, padding="same", dilation=2, groups=8, bias=False)
        self.c = nn.Conv2d(8, 4, 1, padding="valid")

    def forward(self, x):
        return self.c(F.relu6(self.b(F.leaky_relu(self.a(x), 0.2))))


class PaddedConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(2, 4, 3, padding=1, padding_mode="reflect")
        self.b = nn.Conv2d(4, 4, 3, padding=1, padding_mode="replicate")
        self.c = nn.Conv2d(4, 2, 3, padding=(2, 1), padding_mode="circular")

    def forward(self, x):
        return self.c(self.b(self.a(x)))


class Conv3d(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv3d(2, 4, (2, 3, 3), padding=(0, 1, 1))
        self.n = nn.BatchNorm3d(4)
        self.up = nn.ConvTranspose3d(4, 2, 2, stride=2)

    def forward(self, x):
        x = F.elu(self.n(self.a(x)))
        return self.up(F.max_pool3d(x, 2)), F.avg_pool3d(x, 2), F.adaptive_avg_pool3d(x, 1), F.adaptive_max_pool3d(x, 1)


class Transposed(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1)
        self.b = nn.ConvTranspose2d(6, 4, (2, 3), stride=(1, 2), groups=2, bias=False, dilation=(2, 1))

    def forward(self, x):
        return self.b(F.silu(self.a(x)))


class Unbatched(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(1, 4, 3, padding=1)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        return F.avg_pool2d(self.pool(F.relu(self.a(x))), 2).flatten(0)


class MaxPools(nn.Module):
    def forward(self, x):
        return (F.max_pool2d(x, 3, 2, 1), F.max_pool2d(x, 3, 2, ceil_mode=True), F.max_pool2d(x, (2, 3), (1, 2), dilation=(2, 1)),
                F.max_pool1d(x.flatten(2), 4))


class AvgPools(nn.Module):
    def forward(self, x):
        return (F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), F.avg_pool2d(x, 3, 2, 1, False, False),
                F.avg_pool2d(x, 3, 2, 1, True, False), F.avg_pool2d(x, (2, 3), divisor_override=5), F.avg_pool1d(x.flatten(2), 4, 3))


class Adaptive(nn.Module):
    def forward(self, x):
        return (F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (4, 2)), F.adaptive_avg_pool2d(x, (5, 3)),
                F.adaptive_max_pool2d(x, (2, 4)), F.adaptive_avg_pool1d(x.flatten(2), 8), F.adaptive_max_pool1d(x.flatten(2), 4))


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.b1, self.b2 = nn.BatchNorm1d(6), nn.BatchNorm2d(6, eps=1e-3, affine=False)
        self.g, self.i = nn.GroupNorm(3, 6), nn.InstanceNorm2d(6, affine=True)
        self.local = nn.BatchNorm2d(6, track_running_stats=False)
        nn.init.normal_(self.g.weight)
        nn.init.normal_(self.i.bias)

    def forward(self, x):
        x = self.b2(x)
        return self.b1(x.mean((2, 3))), self.g(x), self.i(x), self.local(x), self.b1(x.flatten(2))


class LayerNorms(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.LayerNorm(8), nn.LayerNorm((4, 8), eps=1e-3), nn.LayerNorm(8, elementwise_affine=False)
        self.d = nn.RMSNorm(8)
        nn.init.normal_(self.a.weight)
        nn.init.normal_(self.b.bias)
        nn.init.normal_(self.d.weight)

    def forward(self, x):
        return self.a(x), self.b(x), self.c(x), self.d(x)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(10, 16), nn.Linear(16, 4, bias=False)
        self.drop = nn.Dropout(0.3)
        self.slope = nn.PReLU()

    def forward(self, x):
        return F.log_softmax(self.b(self.drop(self.slope(self.a(x)))), dim=1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        y, _ = self.a(x, x, x, need_weights=False)
        return y


class Recurrent(nn.Module):
    def __init__(self, kind, **more):
        super().__init__()
        self.a = kind(5, 6, **more)

    def forward(self, x):
        y, h = self.a(x)
        return (y, *h) if isinstance(h, tuple) else (y, h)


class RecurrentScript(nn.Module):
    """A classifier of sequences, as people script it."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 5)
        self.rnn = nn.LSTM(5, 6, batch_first=True, bidirectional=True)
        self.out = nn.Linear(12, 3)

    def forward(self, tokens):
        y, _ = self.rnn(self.embed(tokens))
        return self.out(y[:, -1])


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.LSTMCell(4, 6), nn.GRUCell(4, 6)

    def forward(self, x):
        h, c = self.a(x[:, 0])
        h, c = self.a(x[:, 1], (h, c))
        return h, c, self.b(x[:, 1], self.b(x[:, 0]))


class Control(nn.Module):
    """What scripts are made of: branches, loops, lists, tuples, dictionaries, texts, methods."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(6, 6) for _ in range(3)])
        self.scale: float = 0.5
        self.wide: bool = False
        self.register_buffer("offset", torch.arange(6.0))

    def helper(self, x: torch.Tensor, times: int) -> torch.Tensor:
        for i in range(times):
            if i % 2 == 0:
                x = x * self.scale
            else:
                x = x + self.offset
        return x

    def forward(self, x):
        kept = []
        for i, layer in enumerate(self.layers):
            x = F.relu(layer(x))
            if i != 1:
                kept.append(x)
        if self.wide:
            x = x.sum(dim=0, keepdim=True)
        parts = torch.split(torch.cat(kept, dim=1), 4, dim=1)
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        n = 0
        while n < 3:
            n += 1
        named = {"a": total, "b": total * n}
        first, second = self.pair(named["b"])
        if "a" in named and named["a"].size(1) == 4:
            first = first + 1
        return self.helper(x, 3), first - second

    def pair(self, x):
        return x.tanh(), x.sigmoid()


class Assigned(nn.Module):
    """Writes to parts of tensors."""

    def forward(self, x):
        y = torch.zeros_like(x)
        y[:, 1:3] = x[:, 0:2]
        y[:, 0] = 2.5
        y[:, 3] += x[:, 3]
        y.add_(1).mul_(0.5)
        z = x.clone()
        z[:, :, 2].fill_(-1)
        z[0:1].copy_(x[1:2])
        return y, z.relu_()


class Training(nn.Module):
    """Saved in training mode."""

    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 4, 3, padding=1)
        self.n = nn.BatchNorm2d(4)
        self.d = nn.Dropout(0.5)
        self.d2 = nn.Dropout2d(0.5)
        self.l = nn.Linear(4, 3)

    def forward(self, x):
        x = self.d2(F.relu(self.n(self.a(x))))
        return self.l(F.dropout(self.d(x).mean([2, 3]), 0.5, self.training))


def interpolated(x):
    return (F.interpolate(x, scale_factor=2), F.interpolate(x, size=(7, 9)), F.interpolate(x, scale_factor=1.5, mode="nearest-exact"),
            F.interpolate(x, scale_factor=2, mode="bilinear"), F.interpolate(x, size=(9, 4), mode="bilinear", align_corners=True))


def interpolated_more(x):
    return (F.interpolate(x, scale_factor=2, mode="bicubic"), F.interpolate(x, size=(10, 12), mode="bicubic", align_corners=True),
            F.interpolate(x.flatten(2), scale_factor=2, mode="linear"), F.interpolate(x.flatten(2), size=50),
            F.interpolate(x.flatten(2), size=44, mode="nearest-exact"),
            F.interpolate(x[:, :, None], scale_factor=(1, 2, 2), mode="trilinear"), F.interpolate(x[:, :, None], scale_factor=2.0),
            F.interpolate(x, size=(3, 4), mode="bilinear", antialias=True))


def sampled(x, theta):
    grid = F.affine_grid(theta, [2, 2, 6, 7], align_corners=False)
    return (F.grid_sample(x, grid, align_corners=False), F.grid_sample(x, grid, "nearest", "border", align_corners=False),
            F.grid_sample(x, grid, padding_mode="reflection", align_corners=True))


def functions(x):
    return (torch.sin(x), torch.cos(x), torch.tan(x), torch.asin(x), torch.acos(x), torch.atan(x), torch.sinh(x), torch.cosh(x),
            torch.asinh(x), torch.acosh(x + 1.5), torch.atanh(x), torch.erf(x), torch.reciprocal(x + 2), torch.rsqrt(x + 2))


def logarithms(x):
    return (torch.log(x), torch.log2(x), torch.log10(x), torch.log1p(x), torch.exp(x), torch.exp2(x), torch.expm1(x), torch.sqrt(x),
            torch.square(x), torch.abs(-x), torch.neg(x), torch.sign(x - 0.5))


def rounding(x):
    return torch.floor(x), torch.ceil(x), torch.round(x), torch.trunc(x), torch.frac(x)


def activations(x):
    return (F.relu(x), F.relu6(x * 4), torch.sigmoid(x), torch.tanh(x), F.leaky_relu(x, 0.1), F.elu(x, 0.7), F.selu(x), F.celu(x, 0.8),
            F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.mish(x), F.hardswish(x * 3), F.hardsigmoid(x * 3), F.hardtanh(x, -0.5, 0.4))


def activations_more(x, w):
    return (F.softplus(x), F.softplus(x, 2, 30), F.logsigmoid(x), F.softshrink(x, 0.3), F.hardshrink(x, 0.4), F.tanhshrink(x), F.softsign(x),
            F.threshold(x, 0.1, 0.5), F.glu(x, 1), F.prelu(x, w), F.softmin(x, 1))


def arithmetic(x, y, n):
    return (x + y, x - y, x * y, x / y, x + 2 * n, n / 3, n // 3, n % 3, x ** 2, 2 - x, torch.sub(x, y, alpha=2), torch.add(x, n, alpha=3),
            torch.div(x, y, rounding_mode="floor"), torch.div(x, y, rounding_mode="trunc"), x % 0.7, torch.fmod(x, 0.7))


def arithmetic_more(x, y):
    return (torch.maximum(x, y), torch.minimum(x, y), torch.clamp(x, 0.1, 0.6), torch.clamp(x, min=0.2), torch.clamp(x, max=y),
            torch.addcmul(x, x, y, value=0.5), torch.addcdiv(x, x, y + 3), torch.lerp(x, y, 0.3), torch.pow(y.abs(), x.abs()),
            torch.rsub(x, 3), torch.clamp_min(x, 0.3), torch.clamp_max(x, 0.3), torch.floor_divide(x, y), torch.true_divide(x, y))


def comparisons(x, y, n):
    return (x == y, x != 0.5, x < y, x <= y, x > 0, x >= y, n == 2, torch.logical_and(x > 0, y > 0), torch.logical_or(x > 0, y > 0),
            torch.logical_xor(x > 0, y > 0), torch.logical_not(x > 0), (x > 0) & (y > 0), (x > 0) | (y > 0), ~(x > 0), (x > 0) ^ (y > 0),
            torch.isnan(x), torch.isinf(x))


def choices(x, y, n):
    return (torch.where(x > 0, x, y), torch.where(x > 0, 1.5, y), x.masked_fill(y > 0, -3), n.to(torch.float32) * 0.5, x.to(torch.int32),
            x.type_as(n), (x > 0).float(), n.clone() & 3, n | 4, n ^ 1, torch.bitwise_not(n), x.double().float())


def reductions(x):
    return (x.mean(), x.mean(1), x.mean((1, 2), keepdim=True), x.sum(), x.sum(-1), x.prod(2), x.amax(1), x.amin((0, 2), keepdim=True),
            torch.logsumexp(x, 1), x.max(), x.min(), x.argmax(1), x.argmin(), (x > 0).any(1), (x > 0).all(), (x > 0).sum(1))


def extremes(x):
    return (*x.max(1), *x.min(-1, keepdim=True), *torch.topk(x, 3, -1), *torch.sort(x, 1, descending=True), torch.argsort(x, -1),
            torch.cumsum(x, 1))


def variances(x):
    return (x.var(), x.var(1), x.std((1, 2), unbiased=False), *torch.var_mean(x, 1, keepdim=True), *torch.std_mean(x, 2),
            x.norm(dim=1), torch.linalg.vector_norm(x, 1, dim=2), torch.linalg.vector_norm(x, float("inf"), dim=(1, 2)), x.norm(),
            F.cosine_similarity(x[:, 0], x[:, 1]), F.normalize(x, dim=1))


def softmaxes(x):
    return F.softmax(x, 1), F.log_softmax(x, -1), torch.softmax(x, 0), F.softmax(x.half().float(), 2)


def views(x):
    return (x.view(2, -1), x.reshape(2, 3, 20), x.flatten(1), x.flatten(1, 2), x.unflatten(1, (3, 1)), x.permute(0, 2, 3, 1), x.transpose(1, -1),
            x.unsqueeze(-1), x.unsqueeze(0).squeeze(0) + 3, x[:, :1].squeeze(), x.movedim(1, -1), x.view_as(x) - 1, x.flatten(2).mT,
            x[0, 0].t(), (x + 1).contiguous(), (x + 2).detach(), x.reshape_as(x) * 2, x.swapaxes(0, 1), x[0, 0].T)


def joins(x, y):
    return (torch.cat([x, y], 1), torch.cat([x, y, x], -1), torch.stack([x, y]), torch.stack([x, y], -1), torch.cat([x, y > 0], 0),
            *torch.meshgrid(x[0, 0], y[0, :, 0], indexing="ij"), *torch.meshgrid(x[0, 0], y[0, :, 0], indexing="xy"))


def splits(x):
    return (*torch.split(x, 2, 1), *torch.split(x, [1, 4], 1), *torch.chunk(x, 2, 2), *x.unbind(0), x.narrow(1, 1, 3), x.narrow(0, 0, 1))


def picks(x):
    return (x[:, 1], x[..., -1], x[:, 1:4:2], x[:, -2:], x[1], x[0:1, 2, 1:], x.select(2, 1), x[:, :100] + 1)


def gathers(x, n):
    return (x[:, n], torch.index_select(x, 2, n), x[n[:2], n[:2]], x[:, n[:2], n[1:3]], x[n[0]], torch.gather(x, 1, (x > 0).long()),
            F.embedding(n, x[0]), x[n[:2, None], n[None, :]], F.one_hot(n, 6))


def scatters(x, n):
    return (torch.scatter(x, 1, (x > 9).long(), x * 2), torch.scatter(x, 1, (x > 9).long(), 1.5), torch.slice_scatter(x, x[:, :2] * 2, 1, 1, 3),
            torch.select_scatter(x, x[:, 0] * 3, 1, 2), torch.index_put(x, (n,), x[n] * 2), torch.scatter_add(x, 1, (x > 0).long(), x))


def pads(x):
    return (F.pad(x, (1, 2)), F.pad(x, (1, 0, 2, 1), value=0.5), F.pad(x, (1, 1, 2, 0), mode="reflect"), F.pad(x, (1, 1, 0, 2), mode="replicate"),
            F.pad(x, (1, 1, 1, 1), mode="circular"), F.pad(x, (-1, 0)), F.pad(x[0], (2, 1), mode="reflect"), F.pad(x[0], (2, 1), mode="replicate"),
            F.pad(x[:, :, None], (1, 1, 1, 1, 0, 0), mode="reflect"), F.pad(x[:, :, None], (1, 1, 1, 1, 1, 1), mode="replicate"))


def moves(x):
    return (x.repeat(1, 2, 1, 3), x[0].repeat(2, 1, 1, 1), x.tile((2,)), x.repeat_interleave(2, 1), torch.roll(x, (1, -2), (2, 3)), torch.flip(x, (2, 3)),
            F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2), x.unfold(2, 3, 2), torch.tril(x), torch.triu(x, 1), F.channel_shuffle(x, 2))


def expansions(x, y):
    return x.expand(3, 4, 5), x[0].expand(2, -1, -1), x.expand_as(y), x.broadcast_to(y.shape)


def made(x):
    return (x + torch.zeros(4), x + torch.ones(3, 4), torch.full((2, 3), 0.5) + x[:, :3], x * torch.arange(4), x + torch.arange(1, 3, 0.5),
            torch.zeros_like(x), torch.ones_like(x), torch.full_like(x, 2.5), x.new_zeros(3, 4), x.new_ones(4) + x, x.new_full((4,), 3) + x,
            torch.linspace(0, 1, 5) + x[:, :1], torch.tensor([1.0, 2.0, 3.0, 4.0]) * x, x + torch.tensor(2))


def products(x, y, v):
    return (x @ y, torch.mm(x[0], y[0]), torch.bmm(x, y), torch.mv(x[0], v), torch.dot(v, v), torch.addmm(x[0, :3, :3], x[0], y[0], beta=0.5, alpha=2),
            torch.baddbmm(x[:, :3, :3], x, y), torch.outer(v, v), torch.einsum("bij,bjk->bik", x, y), torch.einsum("bij->bi", x), x @ v,
            torch.addmv(v[:3], x[0], v))


def attentions(q, k, v, mask):
    return (F.scaled_dot_product_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, mask), F.scaled_dot_product_attention(q, k, v, scale=0.3),
            F.scaled_dot_product_attention(q, q, q, is_causal=True), F.scaled_dot_product_attention(q, k, v, mask > 0))


def no_gradients(x):
    with torch.no_grad():
        y = x * 2
    return y + x


def spellings(x, w):
    """Operators under names that only decompositions and older programs use."""
    aten, n = torch.ops.aten, x[:, :, 0]
    return (torch.clip(x, -0.5, 0.5), torch.concat([x, x], 1), aten._unsafe_view(x, [2, -1]), aten._prelu_kernel(x, w.view(1, 4, 1, 1)),
            aten.reflection_pad1d(n, [1, 2]), aten.reflection_pad2d(x, [1, 2, 0, 1]), aten.reflection_pad3d(x, [1, 0, 1, 1, 1, 0]),
            aten.replication_pad1d(n, [1, 2]), aten.replication_pad2d(x, [1, 2, 0, 1]), aten.replication_pad3d(x, [1, 0, 1, 1, 1, 0]),
            aten.native_batch_norm(x, w, w, w, w.abs() + 1, False, 0.1, 1e-3)[0], aten._fused_rms_norm(x, [5], None, 1e-3)[0],
            aten._weight_norm_interface(x[0], w.view(4, 1, 1), 0)[0], aten.zero(x) + 1, torch.empty_like(x).fill_(2), x.norm(2, 1),
            aten.norm(x, 2, [1]), aten.feature_dropout(x, 0.5, False) * 2, aten.alpha_dropout(x, 0.5, False) * 3, *aten.unsafe_chunk(x, 2, 1),
            aten._convolution(x, w.view(1, 4, 1, 1), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, False, False, False, False),
            aten.grid_sampler_2d(x, x[:, :2, :, :2].tanh(), 0, 0, True), aten._scaled_dot_product_flash_attention_for_cpu(x, x, x)[0])


def counted(x, n):
    """Sizes that come from contents, with the checks of their range."""
    k = n.item()
    torch._check(k >= 2)
    torch._check(k <= 4)
    y = x[:, :k]
    return y * y.shape[1], x.numel() + y


def dynamic(x):
    """Sizes that are computed: the batch is open, and its size goes into shapes and sums."""
    n, c, h, w = x.shape
    y = x.reshape(n, c // 2, 2, h * w).transpose(1, 2).reshape(n, -1)
    return y, x.flatten(2).permute(2, 0, 1), torch.zeros(n, 3) + y[:, :3], x.view(n * c, h, w).mean((1, 2)).view(n, c) / c, x.expand(n, c, h, w) + x.numel()


def local_response(x):
    return F.local_response_norm(x, 3), F.lp_pool2d(x, 2, 2)


def encoder():
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)


def block():
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Dropout(0.2), nn.Linear(8, 5))


def weight_normed():
    return nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), nn.utils.parametrizations.weight_norm(nn.Linear(3, 2), dim=1))


# Scripts whose inputs' shapes no layer tells before it is asked for them.

def masks(x, mask, y):
    """Truths as indices: elements, rows and columns that they choose, and what is placed there."""
    z = x.clone()
    z[z > 0.5] = 2
    z[mask] = -1.5
    w = x.clone()
    w[mask] = y
    return x[mask], x[x > 0], x[:, y[0] > 0], torch.masked_select(x, y[:1] > 0), torch.nonzero(x > 0.3), *torch.nonzero(x < 0, as_tuple=True), z, w


def sized(x):
    """What is traced of sizes: what is missing to a multiple, quotients, products."""
    h, c = x.shape[2], x.shape[1]
    y = F.pad(x, (0, 0, 0, (4 - h % 4) % 4))
    z = x.view(x.shape[0], c // 2 * 2, -1)
    return y, z, x.reshape(torch.div(c, 4, rounding_mode="trunc") + 1, -1), x * (c - 2 * h)


class Listed(nn.Module):
    """Sums of lists, and whether any of them is true."""

    def forward(self, x):
        sizes: List[int] = [2, 3]
        if any([size > 2 for size in sizes]):
            x = x[:, :sum(sizes)]
        if all([size > 2 for size in sizes]):
            x = x * 2
        return x.split(sizes, 1)


def scopes(x):
    """What runs without gradients and in a precision of its own is a graph in the graph."""
    with torch.no_grad():
        y = x * 2
    with torch.autocast("cpu", enabled=False):
        z = (y + x).sum(1)
    return z * y.mean()


def boxes(dets, scores):
    """Suppression, and what is left of the boxes."""
    kept = torchvision.ops.nms(dets, scores, 0.4)
    return kept, dets[kept], torchvision.ops.batched_nms(dets, scores, (scores * 3).to(torch.int64), 0.5)


def regions(x, corners):
    rois = torch.cat([torch.tensor([[0.0], [1], [1]]), corners], 1)
    return (torchvision.ops.roi_align(x, rois, (3, 4), 0.5, 2), torchvision.ops.roi_align(x, rois, (2, 2), 1.0, -1, True),
            torchvision.ops.roi_pool(x, rois, (3, 2), 0.5))


def some_boxes(count, size):
    corner = torch.rand(count, 2) * size / 2
    return torch.cat([corner, corner + 1 + torch.rand(count, 2) * size / 2], 1)


class Deformable(nn.Module):
    def __init__(self):
        super().__init__()
        self.offset, self.mask = nn.Conv2d(4, 36, 3, padding=1), nn.Conv2d(4, 18, 3, padding=1)
        self.a = torchvision.ops.DeformConv2d(4, 6, 3, padding=1, groups=2)
        self.b = torchvision.ops.DeformConv2d(6, 4, 3, padding=1, bias=False)

    def forward(self, x):
        offset = self.offset(x)
        y = self.a(x, offset, torch.sigmoid(self.mask(x)))
        return self.b(y, offset[:, :18])


SHAPED = ("listed", "adaptive_pool", "assigned", "conv_padding_mode", "norms", "layer_norms", "cells")
ALL = (PT2, CORE, SCRIPT, TRACE)
FUNCTION = (PT2, CORE, TRACE)
# name: (module, inputs, forms[, dynamic shapes])
CASES = {
    "conv1d": (Conv1d(), (r(2, 3, 20),), ALL),
    "conv2d": (Conv2d(), (r(2, 3, 9, 10),), ALL),
    "conv_padding_mode": (PaddedConv(), (r(2, 2, 6, 7),), ALL),
    "conv3d": (Conv3d(), (r(1, 2, 5, 6, 6),), ALL),
    "conv_transpose": (Transposed(), (r(1, 4, 5, 6),), ALL),
    "unbatched": (Unbatched(), (r(1, 8, 8),), (PT2, TRACE)),
    "max_pool": (MaxPools(), (r(2, 3, 8, 9),), ALL),
    "avg_pool": (AvgPools(), (r(2, 3, 8, 8),), ALL),
    "adaptive_pool": (Adaptive(), (r(2, 3, 8, 8),), ALL),
    "norms": (Norms(), (r(3, 6, 4, 4),), ALL),
    "layer_norms": (LayerNorms(), (r(2, 4, 8),), ALL),
    "local_response": (Do(local_response), (u(1, 6, 6, 6),), (PT2, TRACE)),
    "mlp": (Mlp(), (r(4, 10),), ALL, ({0: BATCH},)),
    "block": (block(), (r(2, 3, 16, 16),), ALL, ({0: BATCH},)),
    "block_stored": (block(), (r(2, 3, 16, 16),), (PT2, SCRIPT)),
    "multihead": (Attention(), (r(2, 5, 8),), (PT2, SCRIPT, TRACE)),
    "encoder": (encoder(), (r(2, 5, 8),), (PT2, CORE, TRACE)),
    "attention": (Do(attentions), (r(2, 2, 4, 8), r(2, 2, 4, 8), r(2, 2, 4, 8), r(4, 4) + 5 * torch.eye(4)), FUNCTION),
    "products": (Do(products), (r(2, 3, 4), r(2, 4, 3), r(4)), FUNCTION),
    "lstm": (Recurrent(nn.LSTM), (r(4, 2, 5),), (PT2, SCRIPT, TRACE)),
    "lstm_stack": (Recurrent(nn.LSTM, num_layers=2, bidirectional=True, batch_first=True), (r(2, 4, 5),), (PT2, TRACE)),
    "gru": (Recurrent(nn.GRU, bias=False, bidirectional=True), (r(4, 2, 5),), (PT2, TRACE)),
    "gru_stack": (Recurrent(nn.GRU, num_layers=2, batch_first=True), (r(2, 4, 5),), (PT2, TRACE)),
    "rnn": (Recurrent(nn.RNN, batch_first=True), (r(2, 4, 5),), (PT2, TRACE)),
    "text_classifier": (RecurrentScript(), (ints(20, 2, 7),), (PT2, SCRIPT, TRACE)),
    "cells": (Cells(), (r(3, 2, 4),), (PT2, SCRIPT, TRACE)),
    "interpolate": (Do(interpolated), (r(1, 2, 4, 5),), FUNCTION),
    "interpolate_more": (Do(interpolated_more), (r(1, 2, 5, 6),), (PT2, TRACE)),
    "grid": (Do(sampled), (r(2, 2, 5, 5), r(2, 2, 3) * 0.5), (PT2, TRACE)),
    "functions": (Do(functions), (u(3, 4),), FUNCTION),
    "logarithms": (Do(logarithms), (u(3, 4),), FUNCTION),
    "rounding": (Do(rounding), (r(3, 4) * 3,), FUNCTION),
    "activations": (Do(activations), (r(3, 8),), FUNCTION),
    "activations_more": (Do(activations_more), (r(3, 8), u(8)), FUNCTION),
    "arithmetic": (Do(arithmetic), (u(3, 4), u(3, 4) + 0.3, ints(9, 3, 4)), FUNCTION),
    "arithmetic_more": (Do(arithmetic_more), (u(3, 4), u(3, 4) + 0.3), FUNCTION),
    "comparisons": (Do(comparisons), (r(3, 4), r(3, 4), ints(4, 3, 4)), FUNCTION),
    "choices": (Do(choices), (r(3, 4), r(3, 4), ints(9, 3, 4)), FUNCTION),
    "reductions": (Do(reductions), (r(2, 3, 4),), FUNCTION),
    "extremes": (Do(extremes), (r(2, 5, 4),), FUNCTION),
    "variances": (Do(variances), (r(2, 3, 4),), FUNCTION),
    "softmaxes": (Do(softmaxes), (r(2, 3, 4),), FUNCTION),
    "views": (Do(views), (r(2, 3, 4, 5),), FUNCTION),
    "joins": (Do(joins), (r(2, 3, 4), r(2, 3, 4)), FUNCTION),
    "splits": (Do(splits), (r(2, 5, 4),), FUNCTION),
    "picks": (Do(picks), (r(2, 5, 4),), FUNCTION),
    "gathers": (Do(gathers), (r(4, 5, 5), torch.tensor([1, 3, 0])), FUNCTION),
    "scatters": (Do(scatters), (r(4, 5), torch.tensor([1, 3, 0])), (PT2, TRACE)),
    "pads": (Do(pads), (r(1, 2, 4, 5),), FUNCTION),
    "moves": (Do(moves), (r(1, 4, 6, 6),), (PT2, TRACE)),
    "expansions": (Do(expansions), (r(1, 4, 5), r(3, 4, 5)), FUNCTION),
    "made": (Do(made), (r(3, 4)[:2].repeat(1, 1)[:1],), FUNCTION),
    "spellings": (Do(spellings), (r(2, 4, 6, 5), r(4)), (PT2,)),
    "counted": (Do(counted), (r(3, 6), torch.tensor(3)), (PT2,), ({0: BATCH}, {})),
    "no_gradients": (Do(no_gradients), (r(2, 3),), (PT2,)),
    "dynamic": (Do(dynamic), (r(2, 4, 3, 3),), (PT2, CORE, TRACE), ({0: BATCH},)),
    "assigned": (Assigned(), (r(2, 4, 3),), (PT2, CORE, SCRIPT, TRACE)),
    "weight_norm": (weight_normed(), (r(2, 4),), (PT2, TRACE)),
    "masks": (Do(masks), (r(3, 4), torch.tensor([True, False, True]), r(2, 4)), FUNCTION),
    "sized": (Do(sized), (r(2, 6, 5, 3),), (PT2, TRACE)),
    "listed": (Listed(), (r(2, 7),), (SCRIPT,)),
    "scopes": (Do(scopes), (r(2, 3),), (PT2, CORE)),
    "boxes": (Do(boxes), (some_boxes(12, 10), u(12)), (PT2, TRACE)),
    "regions": (Do(regions), (r(2, 3, 12, 10), some_boxes(3, 10)), (PT2, TRACE)),
    "deformable": (Deformable(), (r(2, 4, 6, 5),), (PT2, SCRIPT, TRACE)),
    "control": (Control(), (r(2, 6),), (PT2, SCRIPT)),
    "training": (Training(), (r(2, 3, 5, 5),), (SCRIPT,)),
}


def exported(module, inputs, form, shapes):
    program = torch.export.export(module, inputs, dynamic_shapes=((shapes,) if isinstance(module, Do) else shapes) if shapes else None)
    if form == CORE:
        program = program.run_decompositions()
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    names = [spec.arg.name for spec in program.graph_signature.output_specs if spec.kind.name == "USER_OUTPUT"]
    return buffer.getvalue(), list(program.graph_signature.user_inputs), names


def scripted(module, inputs, form):
    made_of = torch.jit.script(module) if form == SCRIPT else torch.jit.trace(module, inputs, check_trace=False)
    buffer = io.BytesIO()
    torch.jit.save(made_of, buffer)
    arguments = [argument.name for argument in made_of.forward.schema.arguments][1:] if form == SCRIPT else [
        f"argument_{i}" if value.debugName().isdigit() else value.debugName().split(".")[0]
        for i, value in enumerate(made_of.forward.graph.inputs()) if i]
    return buffer.getvalue(), arguments, None


def make(name, form, row):
    module, inputs, _, *shapes = row
    case = name + {PT2: "", CORE: "_core", SCRIPT: "_script", TRACE: "_trace"}[form]
    module = normed(module, inputs)
    with torch.no_grad():
        outputs = module(*inputs)
    outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    if name == "training":
        module.train()
    with torch.no_grad():
        data, arguments, names = (exported(module, inputs, form, shapes[0] if shapes else None) if form in (PT2, CORE) else
                                  scripted(module, inputs, form))
    names = names or (["output"] if len(outputs) == 1 else [f"output{i}" for i in range(len(outputs))])
    pack(data, os.path.join(CASES_FOLDER, case + (".pt2" if form in (PT2, CORE) else ".pt")), name.endswith("_stored"))
    arrays = {f"in:{key}": value.numpy() for key, value in zip(arguments, inputs)}
    for key, value in zip(names, outputs):
        arrays[f"out:{key}"] = value.detach().numpy()
    if form == SCRIPT and name in SHAPED:
        arrays["flags:"] = np.array([word for value in inputs for word in ("-is", *map(str, value.shape))])
    np.savez_compressed(os.path.join(CASES_FOLDER, case + ".npz"), **arrays)


def main():
    wanted = sys.argv[1:]
    os.makedirs(CASES_FOLDER, exist_ok=True)
    for name, row in CASES.items():
        for form in row[2]:
            if wanted and name not in wanted and form not in wanted:
                continue
            torch.manual_seed(0)
            try:
                make(name, form, row)
            except Exception as error:  # all that fail are told at once
                print(f"{name} {form}: {type(error).__name__}: {str(error)[:400]}")


if __name__ == "__main__":
    main()
