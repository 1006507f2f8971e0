#!/bin/sh
# Makes what the examples need, here: model/ and data/. Needs Python 3 with numpy and nothing else.
cd "$(dirname "$0")" && exec "${QUENCH_PYTHON:-python3}" make_data.py
