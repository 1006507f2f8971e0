"""ResNet-20 for CIFAR-10 as a script of a user registers it: blocks of two convolutions, shortcuts without weights (every
second pixel, and channels of zeros)."""

import torch
import torch.nn.functional as F
from onnx_quantize_tool.common.register import pytorch_model
from torch import nn


class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, outputs // inputs, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.more = outputs - inputs

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.more:
            x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.more // 2, self.more // 2))
        return F.relu(x + y)


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = nn.Sequential(*[Block(16, 16) for _ in range(3)])
        self.layer2 = nn.Sequential(Block(16, 32), Block(32, 32), Block(32, 32))
        self.layer3 = nn.Sequential(Block(32, 64), Block(64, 64), Block(64, 64))
        self.linear = nn.Linear(64, 10)

    def forward(self, x, twice: bool = True):
        x = self.layer3(self.layer2(self.layer1(F.relu(self.bn1(self.conv1(x))))))
        x = self.linear(F.adaptive_avg_pool2d(x, 1).flatten(1))
        return x * 2 if twice else x


def load(weight_path):
    model = ResNet20()
    if weight_path:
        state = torch.load(weight_path, map_location="cpu")["state_dict"]
        model.load_state_dict({key.removeprefix("module."): value for key, value in state.items()})
    return model


@pytorch_model.register("resnet20")
def resnet20(weight_path=None):
    return {"model": load(weight_path), "inputs": [torch.randn(1, 3, 32, 32)], "concrete_args": {"twice": False},
            "dynamic_axes_inputs": {"input": {0: "batch_size"}}, "dynamic_axes_outputs": {"output": {0: "batch_size"}}}


@pytorch_model.register("resnet20_pair")
def resnet20_pair(weight_path=None):
    return load(weight_path), torch.randn(2, 3, 32, 32)


@pytorch_model.register("nothing")
def nothing():
    return 3
