"""generate.py OUT: writes the node tests of the installed onnx package as test folders, by the opset of
their models: OUT/older (below 18), OUT/current (18 to 23), OUT/newer (above 23). The form is that of
ONNX's own data: model.onnx, test_data_set_0/{input,output}_K.pb; tolerance.txt has the case's own
"relative absolute"."""

import os
import sys
import warnings

import numpy as np
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases


def group(model):
    version = max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=1)
    return "older" if version < 18 else "current" if version <= 23 else "newer"


def to_bytes(value, info):
    """A value in the form that its declared type asks for."""
    kind = info.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.from_list(value, info.name).SerializeToString()
    if kind == "optional_type":
        return numpy_helper.from_optional(value, info.name).SerializeToString()
    if isinstance(value, TensorProto):
        return value.SerializeToString()
    return numpy_helper.from_array(np.asarray(value), info.name).SerializeToString()


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def write_case(case, folder):
    os.makedirs(folder, exist_ok=True)
    write(os.path.join(folder, "model.onnx"), case.model.SerializeToString())
    write(os.path.join(folder, "tolerance.txt"), f"{case.rtol} {case.atol}\n".encode())
    for i, (inputs, outputs) in enumerate(case.data_sets):
        data_set = os.path.join(folder, f"test_data_set_{i}")
        os.makedirs(data_set, exist_ok=True)
        for stem, values, infos in (("input", inputs, case.model.graph.input),
                                    ("output", outputs, case.model.graph.output)):
            for k, (value, info) in enumerate(zip(values, infos)):
                write(os.path.join(data_set, f"{stem}_{k}.pb"), to_bytes(value, info))


def main():
    warnings.simplefilter("ignore")
    counts = {"older": 0, "current": 0, "newer": 0}
    for case in collect_testcases():
        where = group(case.model)
        write_case(case, os.path.join(sys.argv[1], where, case.name))
        counts[where] += 1
    print(", ".join(f"{count} {name}" for name, count in counts.items()))


main()
