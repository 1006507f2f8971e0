"""make_flat.py: the golden cases of the flat archives that torch.export.save wrote up to torch 2.6, made by torch 2.2.2."""

import io
import os

import numpy as np
import torch
from pack import pack
from torch import nn

CASES_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases")


class Flat(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6(), nn.MaxPool2d(2))
        self.out = nn.Linear(8, 5)
        self.register_buffer("offset", torch.arange(5.0))

    def forward(self, x):
        return self.out(self.body(x).mean((2, 3))) + self.offset


class Recurrent(nn.Module):
    """Whose layers lie in the program one by one, and a list of tensors of which some are None."""

    def __init__(self):
        super().__init__()
        self.sequence = nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.register_buffer("rows", torch.tensor([2, 0]))

    def forward(self, x):
        y, (h, c) = self.sequence(x)
        return y[:, :, self.rows], h + c


class Chosen(nn.Module):
    """As many rows as the input says, with the program's notes on how many they may be."""

    def forward(self, x):
        return x[x[:, 0] > 0] * 2


class Pooled(nn.Module):
    """An average of pictures whose channels came last."""

    def __init__(self):
        super().__init__()
        self.pool, self.norm = nn.AdaptiveAvgPool2d(1), nn.LayerNorm(6)

    def forward(self, x):
        return self.norm(self.pool(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)).flatten(1)


class Attention(nn.Module):
    def forward(self, x):
        return torch.nn.functional.scaled_dot_product_attention(x, x * 2, x + 1, is_causal=True)


class Resized(nn.Module):
    """Sized up by places that the program computes."""

    def forward(self, x):
        return torch.nn.functional.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=True), \
            torch.nn.functional.interpolate(x, size=(7, 5), mode="bilinear", align_corners=False)


def save(name, module, x, **settings):
    module.eval()
    with torch.no_grad():
        given = module(x)
        program = torch.export.export(module, (x,), **settings)
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    pack(buffer.getvalue(), os.path.join(CASES_FOLDER, name + ".pt2"), name == "flat")
    signature = program.graph_signature
    given = given if isinstance(given, tuple) else (given,)
    np.savez_compressed(os.path.join(CASES_FOLDER, name + ".npz"), **{f"in:{signature.user_inputs[0]}": x.numpy()},
                        **{f"out:{output}": y.numpy() for output, y in zip(signature.user_outputs, given)})


def main():
    torch.manual_seed(0)
    module, x = Flat(), torch.randn(2, 3, 16, 16)
    with torch.no_grad():
        for _ in range(3):
            module(x * 2)
    save("flat", module, x, dynamic_shapes=({0: torch.export.Dim("batch", min=2, max=64)},))
    save("flat_recurrent", Recurrent(), torch.randn(2, 7, 6))
    save("flat_pooled", Pooled(), torch.randn(2, 5, 4, 6))
    save("flat_attention", Attention(), torch.randn(2, 2, 5, 8))
    save("flat_resized", Resized(), torch.randn(1, 2, 4, 3))
    save("flat_chosen", Chosen(), torch.randn(6, 3))


if __name__ == "__main__":
    main()
