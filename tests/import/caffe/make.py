"""make.py [CASE...]: makes the cases of this folder: networks as prototxt with weights of write.py, and the outputs of
opencv-python-headless 4.13.0.92's dnn (no fusion, no Winograd), since no Caffe can be had. Where that has no such layer, or
computes something else than Caffe, the output is that of the formula beside the case, in numpy; where it has the layer and a
formula is given, both must agree.

    python -m venv V && V/bin/pip install opencv-python-headless==4.13.0.92 h5py && V/bin/python make.py"""

import os
import sys

import cv2
import numpy as np

import late  # noqa: F401: adds its cases
import more  # noqa: F401
import nets
from write import caffemodel, caffemodel_h5

CASES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases")


def by_opencv(text, weights, inputs, outputs):
    files = [np.frombuffer(text.encode(), np.uint8)] + ([np.fromfile(weights, np.uint8)] if weights else [])
    net = cv2.dnn.readNetFromCaffe(*files)
    net.enableFusion(False)
    net.enableWinograd(False)
    for name, array in inputs.items():
        net.setInput(array, name)
    return dict(zip(outputs, (np.array(a) for a in net.forward(outputs))))


def write(case):
    path = os.path.join(CASES, case.name)
    with open(path + ".prototxt", "w", encoding="utf-8") as file:
        file.write(case.text)
    if not case.layers:
        return path, None
    if "h5" in case.how:
        caffemodel_h5(path + ".caffemodel.h5", case.layers)
        return path, path + ".caffemodel.h5"
    with open(path + ".caffemodel", "wb") as file:
        file.write(caffemodel(case.layers, case.how))
    return path, path + ".caffemodel"


def expected(case, weights):
    formula = case.formula(case.inputs) if case.formula else None
    if case.oracle == "formula":
        return formula
    text = case.text
    for own, swapped in case.swap:
        text = text.replace(own, swapped)
    found = by_opencv(text, weights, case.inputs, case.outputs)
    for name, want in (formula or {}).items():
        worst = np.abs(found[name].reshape(want.shape) - want).max()
        assert worst <= 1e-4 * max(1, np.abs(want).max()), f"{case.name}: OpenCV and the formula differ by {worst}"
    return found


def make(case):
    path, weights = write(case)
    outputs = expected(case, weights)
    arrays = {f"in:{name}": array for name, array in case.inputs.items()}
    arrays.update({f"out:{name}": np.asarray(array, np.float32) for name, array in outputs.items()})
    if case.flags:
        arrays["flags"] = np.array(case.flags)
    np.savez_compressed(path + ".npz", **arrays)


def main():
    chosen = sys.argv[1:]
    cases = [case for case in nets.CASES if not chosen or case.name in chosen]
    for case in cases:
        make(case)
    print(f"{len(cases)} cases, {sum(case.oracle == 'formula' for case in cases)} of them by a formula")


if __name__ == "__main__":
    main()
