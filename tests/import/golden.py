"""golden.py FRAMEWORK [CASE...]: small models that the framework itself made (FRAMEWORK/cases, by FRAMEWORK/make.py) give
in quench, and converted in ONNX Runtime, what the framework gave.

A case is NAME.npz with `in:T` and `out:T` for every input and output, and the model beside it: a file or folder NAME
with any other ending. `flags` are words that the commands get with the model; {folder} in them is the folder of the cases."""

import os
import sys

import numpy as np

from imported import check

HERE = os.path.dirname(os.path.abspath(__file__))
# Endings of weights, which are found beside the model that they belong to.
WEIGHTS = (".npz", ".caffemodel", ".caffemodel.h5", ".pdiparams", ".bin", ".index", ".data-00000-of-00001")


def model_of(folder, case):
    found = [name for name in sorted(os.listdir(folder))
             if name.startswith(case + ".") or name == case]
    models = [name for name in found if not name.endswith(WEIGHTS)] or [name for name in found if not name.endswith(".npz")]
    assert len(models) == 1, f"{case}: one model is wanted, there are {models}"
    return os.path.join(folder, models[0])


def run(folder, case):
    inputs, outputs, flags = {}, {}, []
    with np.load(os.path.join(folder, case + ".npz")) as arrays:
        for key in arrays.files:
            kind, _, name = key.partition(":")
            if kind == "in":
                inputs[name] = arrays[key]
            elif kind == "out":
                outputs[name] = (arrays[key], None)
            elif kind == "flags":
                flags = [str(word).replace("{folder}", folder) for word in arrays[key]]
    return check(case, model_of(folder, case), inputs, outputs, flags)


def main():
    folder = os.path.join(HERE, sys.argv[1], "cases")
    cases = sys.argv[2:] or sorted(name[:-4] for name in os.listdir(folder) if name.endswith(".npz"))
    good = [run(folder, case) for case in cases]
    print(f"{sum(good)} of {len(good)} cases of {sys.argv[1]} give what they gave there")
    sys.exit(0 if good and all(good) else 1)


if __name__ == "__main__":
    main()
