"""torch_python.py: which Python has torch: the one at work, or the one that QUENCH_TORCH_PYTHON names."""

import os
import subprocess
import sys


def has_torch(python):
    return subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode == 0


def torch_python():
    """None: neither has it."""
    return next((python for python in (os.environ.get("QUENCH_TORCH_PYTHON"), sys.executable) if python and has_torch(python)), None)
