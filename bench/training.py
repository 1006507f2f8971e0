"""training.py: what a training step of ResNet-20 takes, beside PyTorch's (eager, channels last: its best mode without compiling).

The same network, batch and optimizer, in turn; images a second by the clock, and milliseconds of CPU time for a step, which mean
something on a machine with other work too. Needs a Python with torch and numpy, QUENCH_DATA, and build/quench. It fails where we
are below 1.25 times PyTorch's images a second (--check)."""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

QUENCH = os.environ.get("QUENCH", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../build/quench"))
MODEL = os.path.join(os.environ.get("QUENCH_DATA", "../shared/data"), "onnx/resnet20_cifar10.onnx")
LEAST = 1.25


def children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def quench(folder, batch, steps, threads):
    """Images a second, and seconds of CPU time of all steps with what comes before them."""
    before = children()
    words = [QUENCH, "train", "-m", MODEL, "-d", os.path.join(folder, "x.npy"), "--labels", os.path.join(folder, "y.txt"), "--batch",
             str(batch), "--iterations", str(steps), "--lr", "0.001", "--threads", str(threads), "--save-dir", folder, "--json", "-q"]
    report = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)
    return report["samples_per_second"], children() - before


def network():
    import torch
    import torch.nn.functional as F

    class Block(torch.nn.Module):
        def __init__(self, channels, filters):
            super().__init__()
            self.more = filters - channels
            self.first = torch.nn.Conv2d(channels, filters, 3, 2 if self.more else 1, 1)
            self.second = torch.nn.Conv2d(filters, filters, 3, 1, 1)

        def forward(self, x):
            y = self.second(F.relu(self.first(x)))
            if self.more:
                x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.more // 2, self.more // 2))
            return F.relu(x + y)

    widths = [16] * 4 + [32] * 3 + [64] * 3
    blocks = [Block(a, b) for a, b in zip(widths, widths[1:])]
    head = [torch.nn.AvgPool2d(8), torch.nn.Flatten(), torch.nn.Linear(64, 10)]
    return torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, 1, 1), torch.nn.ReLU(), *blocks, *head)


def torch_steps(batch, steps, threads):
    import torch
    torch.set_num_threads(threads)
    net = network().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(net.parameters(), .001, .9, weight_decay=1e-4, nesterov=True)
    x = torch.randn(batch, 3, 32, 32).to(memory_format=torch.channels_last)
    y = torch.randint(0, 10, (batch,))
    for step in range(steps + 2):
        if step == 2:
            begin, used = time.monotonic(), time.process_time()
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    return batch * steps / (time.monotonic() - begin), (time.process_time() - used) / steps


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    try:
        import torch  # noqa: F401
    except ImportError:
        print("skipped: no torch")
        return 77
    batch, steps, threads = arguments.batch, arguments.steps, arguments.threads
    ours, theirs, our_cpu, their_cpu = [], [], [], []
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(0)
        np.save(os.path.join(folder, "x.npy"), rng.standard_normal((2 * batch, 3, 32, 32)).astype(np.float32))
        with open(os.path.join(folder, "y.txt"), "w", encoding="utf-8") as file:
            file.writelines(f"{rng.integers(10)}\n" for _ in range(2 * batch))
        for _ in range(arguments.rounds):
            rate, used = quench(folder, batch, steps, threads)
            ours.append(rate)
            our_cpu.append((used - quench(folder, batch, 1, threads)[1]) / (steps - 1))
            rate, used = torch_steps(batch, steps, threads)
            theirs.append(rate)
            their_cpu.append(used)
    ratio = max(ours) / max(theirs)
    print(f"{'':10} {'images/s':>10} {'CPU ms a step':>14}")
    print(f"{'quench':10} {max(ours):10.1f} {1e3 * min(our_cpu):14.1f}")
    print(f"{'PyTorch':10} {max(theirs):10.1f} {1e3 * min(their_cpu):14.1f}")
    print(f"{'ratio':10} {ratio:10.2f} {min(their_cpu) / min(our_cpu):14.2f}")
    return int(arguments.check and ratio < LEAST)


sys.exit(main())
