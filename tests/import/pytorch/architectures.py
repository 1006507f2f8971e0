"""architectures.py [NAME...]: whole networks with random weights, made by torch and saved in all forms (torch.export's archive,
TorchScript scripted, traced, and scripted in training mode), give in quench what they give there, to 1e-4 of the largest
output; then one command quantizes each. QUENCH_TORCH_PYTHON names a Python that has torch (and torchvision, whose networks are
left out without it), QUENCH_TORCH_FLAT_PYTHON one with torch 2.1 to 2.6, whose archives are flat. Skipped where there is none."""

import json
import os
import subprocess
import sys
import tempfile

import numpy as np

QUENCH = os.environ.get("QUENCH")
HERE = os.path.dirname(os.path.abspath(__file__))
TOLERANCE = 1e-4
# What torch itself cannot save: (name, form).
CANNOT = {}


# ---- In torch's Python ------------------------------------------------------------------------------


def vary(network):
    """Statistics and scales that are not 0 and 1."""
    import torch
    for module in network.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.running_mean.uniform_(-0.1, 0.1)
            module.running_var.uniform_(0.8, 1.2)
        elif type(module).__name__ == "CNBlock":
            module.layer_scale.data.uniform_(0.5, 1)


def save(network, x, form, path):
    import torch
    if form == "pt2":
        torch.export.save(torch.export.export(network, (x,)), path)
    elif form == "trace":
        torch.jit.save(torch.jit.trace(network, (x,), check_trace=False), path)
    else:
        try:
            torch.jit.save(torch.jit.script(network.train(form == "training")), path)
        finally:
            network.eval()


def make(name, folder, forms):
    import warnings

    import torch
    from networks import networks
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(5)
    maker, shape = networks()[name]
    network = maker().eval()
    vary(network)
    x = torch.rand(shape) if len(shape) > 2 else torch.randint(0, 50, shape)
    with torch.no_grad():
        given = network(x)
        given = given if isinstance(given, (list, tuple)) else [given]
        np.savez(os.path.join(folder, "net.npz"), x=x.numpy(), **{f"y{i}": y.numpy() for i, y in enumerate(given)})
        for form in forms:
            try:
                save(network, x, form, os.path.join(folder, form + (".pt2" if form == "pt2" else ".pt")))
            except Exception as error:  # whatever torch says belongs into the report
                print(f"{form}: {str(error)[:500]}", file=sys.stderr)


# ---- In the tests' Python ---------------------------------------------------------------------------


def quench(*words):
    done = subprocess.run([QUENCH, *words, "-q"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return done.stdout


def check(folder, form):
    model = os.path.join(folder, form + (".pt2" if form == "pt2" else ".pt"))
    with np.load(os.path.join(folder, "net.npz")) as arrays:
        x, wanted = arrays["x"], [arrays[f"y{i}"] for i in range(len(arrays.files) - 1)]
    np.save(os.path.join(folder, "x.npy"), x)
    shape = ["-is", *map(str, x.shape)] if form in ("script", "training") else []
    rows = json.loads(quench("inspect", model, "--json", *shape))
    out = os.path.join(folder, form + "_out")
    quench("infer", model, *shape, "-i", f"{rows['inputs'][0]['name']}={folder}/x.npy", "-o", out)
    largest = 0
    for row, want in zip(rows["outputs"], wanted, strict=True):
        have = np.load(os.path.join(out, row["name"].replace("/", "_") + ".npy"))
        if have.shape != want.shape:
            raise RuntimeError(f"{row['name']}: {have.shape} for {want.shape}")
        error = np.abs(have - want).max() / np.abs(want).max()
        if not error <= TOLERANCE:
            raise RuntimeError(f"{row['name']} differs by {error:.3g} of the largest")
        largest = max(largest, error)
    quench("quant", model, *shape, "-i", "2", "--save-dir", os.path.join(folder, form + "_quantized"))
    return largest


def run(python, name, forms, label):
    """The lines of what went wrong."""
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run([python, __file__, "--make", name, folder, *forms], capture_output=True, text=True, check=False)
        for form in forms:
            if (name, label or form) in CANNOT:
                continue
            if not os.path.exists(os.path.join(folder, form + (".pt2" if form == "pt2" else ".pt"))):
                message = "not made: " + made.stderr[-700:]
            else:
                try:
                    message = f"equal to {check(folder, form):.1e}, quantized"
                except RuntimeError as error:
                    message = str(error)
            print(f"{name} ({label or form}): {message}", flush=True)
            if not message.startswith("equal"):
                wrong.append(f"{name} ({label or form})")
    return wrong


def names_of(python):
    listing = subprocess.run([python, "-c", "from networks import networks; print(*networks())"], capture_output=True, text=True,
                             check=False, env={**os.environ, "PYTHONPATH": HERE})
    return listing.stdout.split() if listing.returncode == 0 else []


def main():
    if len(sys.argv) > 4 and sys.argv[1] == "--make":
        make(sys.argv[2], sys.argv[3], sys.argv[4:])
        return
    python = os.environ.get("QUENCH_TORCH_PYTHON", sys.executable)
    flat = os.environ.get("QUENCH_TORCH_FLAT_PYTHON")
    names = names_of(python)
    if not names:
        print(f"skipped: {python} has no torch; QUENCH_TORCH_PYTHON names another one")
        sys.exit(77)
    wrong = []
    for name in sys.argv[1:] or names:
        wrong += run(python, name, ["pt2", "script", "trace", "training"], None)
        if flat:
            wrong += run(flat, name, ["pt2"], "flat pt2")
    print(f"{len(wrong)} wrong: {', '.join(wrong)}" if wrong else "all are equal")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
