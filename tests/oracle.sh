#!/bin/sh
# oracle.sh SCRIPT.py ARGUMENTS...: runs a script with the Python that has the oracles.
# QUENCH_PYTHON names another one than build/venv's.
root=$(cd "$(dirname "$0")/.." && pwd)
python=${QUENCH_PYTHON:-$root/build/venv/bin/python}
if ! "$python" -c 'import numpy, onnx, onnxruntime' 2>/dev/null; then
    echo "skipped: $python has no onnx and onnxruntime (scripts/venv installs them)"
    exit 77
fi
PYTHONPATH=$root/tests exec "$python" "$@"
