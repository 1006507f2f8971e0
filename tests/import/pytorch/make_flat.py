"""make_flat.py: the golden case of the flat archives that torch.export.save wrote up to torch 2.6, made by torch 2.2.2."""

import os

import numpy as np
import torch
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


def main():
    torch.manual_seed(0)
    module, x = Flat(), torch.randn(2, 3, 16, 16)
    with torch.no_grad():
        for _ in range(3):
            module(x * 2)
        module.eval()
        y = module(x)
        program = torch.export.export(module, (x,), dynamic_shapes=({0: torch.export.Dim("batch", min=2, max=64)},))
    torch.export.save(program, os.path.join(CASES_FOLDER, "flat.pt2"))
    signature = program.graph_signature
    np.savez_compressed(os.path.join(CASES_FOLDER, "flat.npz"),
                        **{f"in:{signature.user_inputs[0]}": x.numpy(), f"out:{signature.user_outputs[0]}": y.numpy()})


if __name__ == "__main__":
    main()
