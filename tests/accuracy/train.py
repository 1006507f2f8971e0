"""train.py MODEL: a step of training goes through every operator of the model.

The model learns to stay as it is (--distill 1) from a sample of random numbers. That gradients are right is tested in
tests/unit; here, that each of these networks has one."""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "bench"), os.path.join(HERE, "..")]
import models

try:
    import numpy as np
except ImportError as error:
    print(f"skipped: {error} (scripts/venv installs what is needed)")
    sys.exit(77)


def main(name):
    if models.missing():
        print(f"skipped: {models.missing()}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        words = [models.QUENCH, "train", "-m", models.path_of(name), "--distill", "1", "--iterations", "1", "--batch", "1",
                 "--lr", "1e-6", "--save-dir", folder, "-q"]
        for key, value in models.random_inputs(name, 1).items():
            path = os.path.join(folder, f"{key}.npy")
            np.save(path, value)
            words += ["-d", f"{key}={path}"]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    print(done.stdout, done.stderr)
    return done.returncode


sys.exit(main(sys.argv[1]))
