"""networks.py: whole networks of torch with random weights, for architectures.py: those of torchvision where it is there, and
others that people write themselves. networks() gives name -> (maker, shape of the input)."""

import torch
import torch.nn.functional as F
from torch import nn


def double(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
                         nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = double(3, 8), double(8, 16), double(16, 32)
        self.up = nn.ConvTranspose2d(32, 16, 2, 2)
        self.joined, self.last = double(32, 16), double(24, 8)
        self.head = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        x = self.first(x)
        y = self.second(F.max_pool2d(x, 2))
        z = self.joined(torch.cat([self.up(self.third(F.max_pool2d(y, 2))), y], 1))
        z = F.interpolate(z, scale_factor=2.0, mode="bilinear", align_corners=True)
        return torch.sigmoid(self.head(self.last(torch.cat([z, x], 1))))


class Ssd(nn.Module):
    """Two maps of a body, boxes and scores of each joined, decoded around priors."""
    priors: torch.Tensor

    def __init__(self, classes=4, boxes=3):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU6(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU6())
        self.more = nn.Sequential(nn.Conv2d(32, 32, 3, 2, 1, groups=32), nn.Conv2d(32, 48, 1), nn.ReLU6())
        self.places = nn.ModuleList([nn.Conv2d(32, boxes * 4, 3, padding=1), nn.Conv2d(48, boxes * 4, 3, padding=1)])
        self.scores = nn.ModuleList([nn.Conv2d(32, boxes * classes, 3, padding=1), nn.Conv2d(48, boxes * classes, 3, padding=1)])
        self.classes = classes
        self.register_buffer("priors", torch.rand(1, boxes * (16 * 16 + 8 * 8), 4) + 0.1)

    def forward(self, x):
        small = self.body(x)
        places, scores = [], []
        for i, (near, kind) in enumerate(zip(self.places, self.scores)):
            y = small if i == 0 else self.more(small)
            places.append(near(y).permute(0, 2, 3, 1).reshape(x.shape[0], -1, 4))
            scores.append(kind(y).permute(0, 2, 3, 1).reshape(x.shape[0], -1, self.classes))
        place, score = torch.cat(places, 1), torch.cat(scores, 1)
        centres = self.priors[..., :2] + place[..., :2] * 0.1 * self.priors[..., 2:]
        sizes = self.priors[..., 2:] * torch.exp(place[..., 2:] * 0.2)
        return torch.cat([centres - sizes / 2, centres + sizes / 2], -1), F.softmax(score, -1)


class Encoder(nn.Module):
    """A transformer's encoder over words."""

    def __init__(self, norm_first=False):
        super().__init__()
        self.words = nn.Embedding(50, 32)
        self.places = nn.Parameter(torch.randn(1, 12, 32))
        layer = nn.TransformerEncoderLayer(32, 4, 64, activation="gelu", batch_first=True, norm_first=norm_first)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 5)

    def forward(self, x):
        return self.head(self.encoder(self.words(x) + self.places).mean(1))


class Translator(nn.Module):
    """Encoder and decoder with the mask of what comes later."""

    def __init__(self):
        super().__init__()
        self.net = nn.Transformer(32, 4, 1, 2, 48, batch_first=True)
        self.head = nn.Linear(32, 9)
        self.register_buffer("mask", torch.triu(torch.full((10, 10), float("-inf")), 1))

    def forward(self, x):
        return self.head(self.net(x, x[:, :10] * 0.5, tgt_mask=self.mask, tgt_is_causal=True))


class Reader(nn.Module):
    """CRNN: columns of a picture of text as a sequence."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, (2, 1), 1),
                                  nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d((8, 2), (8, 2)))
        self.sequence = nn.LSTM(32, 24, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(48, 37)

    def forward(self, x):
        return F.log_softmax(self.head(self.sequence(self.body(x).squeeze(2).transpose(1, 2))[0]), 2)


class Words(nn.Module):
    """Sounds as words: strided 1-D convolutions, normalization by groups, GRU."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(1, 16, 10, 5), nn.GroupNorm(4, 16), nn.GELU(), nn.Conv1d(16, 24, 8, 4, dilation=2), nn.GELU(),
                                  nn.BatchNorm1d(24), nn.Conv1d(24, 24, 5, padding=2, groups=24), nn.Conv1d(24, 32, 1), nn.PReLU())
        self.sequence = nn.GRU(32, 20, batch_first=True)
        self.head = nn.Linear(20, 12)

    def forward(self, x):
        y, last = self.sequence(self.body(x).transpose(1, 2))
        return self.head(y.mean(1) + last[-1])


class Separator(nn.Module):
    """Like Conv-TasNet: an encoder, dilated blocks with skips that mask it, a decoder back to sound."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Conv1d(1, 32, 16, 8, bias=False), nn.ConvTranspose1d(32, 1, 16, 8, bias=False)
        self.blocks = nn.ModuleList([nn.Sequential(nn.Conv1d(32, 48, 1), nn.PReLU(), nn.GroupNorm(1, 48, eps=1e-8),
                                                   nn.Conv1d(48, 48, 3, padding=2 ** i, dilation=2 ** i, groups=48), nn.PReLU(),
                                                   nn.GroupNorm(1, 48), nn.Conv1d(48, 32, 1)) for i in range(3)])
        self.masks = nn.Conv1d(32, 64, 1)

    def forward(self, x):
        w = F.relu(self.encoder(x))
        y = w
        for block in self.blocks:
            y = y + block(y)
        masks = torch.sigmoid(self.masks(y)).view(x.size(0), 2, 32, -1)
        return torch.cat([self.decoder(w * masks[:, i]) for i in range(2)], 1)


class Out(nn.Module):
    """The entry `out` of a network's dictionary."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        return self.network(x)["out"]


def own():
    return {"unet": (Unet, [1, 3, 32, 32]), "ssd": (Ssd, [1, 3, 64, 64]), "encoder": (Encoder, [2, 12]),
            "encoder_norm_first": (lambda: Encoder(True), [2, 12]), "translator": (Translator, [2, 12, 32]),
            "crnn": (Reader, [1, 3, 32, 64]), "words": (Words, [1, 1, 2000]), "separator": (Separator, [1, 1, 800])}


def vit():
    """Small, and with a head that is not 0 at the begin."""
    from torchvision import models

    network = models.VisionTransformer(64, 16, 3, 4, 96, 192)
    nn.init.normal_(network.heads.head.weight)
    return network


def of_torchvision():
    from torchvision import models
    from torchvision.models import segmentation

    made = {name: (getattr(models, name), [1, 3, size, size]) for name, size in (
        ("resnet18", 64), ("resnet50", 64), ("resnext50_32x4d", 64), ("mobilenet_v2", 64), ("mobilenet_v3_small", 64),
        ("mobilenet_v3_large", 64), ("efficientnet_b0", 64), ("efficientnet_v2_s", 64), ("densenet121", 64), ("squeezenet1_1", 64),
        ("shufflenet_v2_x0_5", 64), ("mnasnet0_5", 64), ("regnet_y_400mf", 64), ("regnet_x_400mf", 64), ("convnext_tiny", 64),
        ("swin_t", 64), ("swin_v2_t", 64), ("maxvit_t", 224), ("alexnet", 96))}
    made["inception_v3"] = lambda: models.inception_v3(init_weights=False), [1, 3, 128, 128]
    made["googlenet"] = lambda: models.googlenet(init_weights=False), [1, 3, 64, 64]
    made["vit"] = vit, [1, 3, 64, 64]
    for name in ("deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large", "fcn_resnet50"):
        make = getattr(segmentation, name)
        made[name] = (lambda make=make: Out(make(weights=None, weights_backbone=None, num_classes=4))), [1, 3, 64, 64]
    return made


def networks():
    made = own()
    try:
        made.update(of_torchvision())
    except ImportError:
        pass
    return made
