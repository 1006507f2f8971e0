"""Each operator with each type that it takes, in each form it had: written as ONNX's checker wants it, or refused."""
import os
import subprocess
import sys
import tempfile
import warnings
from types import SimpleNamespace

import numpy as np
import onnx
from onnx import TensorProto, defs, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases

from files import QUENCH

NEWEST = defs.onnx_opset_version()
LATEST_WRITTEN = 23
X = np.ones((1, 2, 4, 4), np.float32)
# Operators that ONNX has no example of: inputs and attributes.
MORE = {"GlobalLpPool": ([X], {}), "Multinomial": ([X[0, 0]], {}), "RandomNormalLike": ([X], {}),
        "RandomUniformLike": ([X], {}), "RandomNormal": ([], {"shape": [2]}), "RandomUniform": ([], {"shape": [2]}),
        "MaxRoiPool": ([X, np.float32([[0, 0, 0, 1, 1]])], {"pooled_shape": [1, 1]}),
        "SequenceConstruct": ([X, X], {})}


def made(op, arrays, attributes):
    names = [f"x{i}" for i in range(len(arrays))]
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
              for name, x in zip(names, arrays)]
    graph = helper.make_graph([helper.make_node(op, names, ["y"], **attributes)], "g", inputs, [])
    return SimpleNamespace(name="made", model=helper.make_model(graph), data_sets=[(arrays, [])])


def examples():
    """{operator: its examples}, of one node each and no two alike in what they say."""
    lines = subprocess.run([QUENCH, "ops"], capture_output=True, text=True, check=True).stdout.splitlines()
    known = {words[0]: {} for words in map(str.split, lines) if words[1:2] == ["ai.onnx"]}
    for case in collect_testcases():
        nodes = case.model.graph.node
        if len(nodes) == 1 and not nodes[0].domain and nodes[0].op_type in known:
            said = tuple(sorted(a.name for a in nodes[0].attribute))
            known[nodes[0].op_type].setdefault((said, tuple(map(bool, nodes[0].input)), len(nodes[0].output)), case)
    del known["STFT"]  # of whose outputs ONNX's inference thinks otherwise before opset 28
    return {op: list(cases.values()) or [made(op, *MORE[op])] for op, cases in known.items() if cases or op in MORE}


def one_node(case, opset, changed=None, dtype=0):
    """The example as a model whose first input only is fed; inputs of the type parameter `changed` get the element
    type `dtype`. None where ONNX has no such model."""
    graph = case.model.graph
    node = graph.node[0]
    ports = defs.get_schema(node.op_type, opset, "").inputs
    inputs, constants = [], []
    for info, value in zip(graph.input, case.data_sets[0][0]):
        info = onnx.ValueInfoProto.FromString(info.SerializeToString())
        port = list(node.input).index(info.name) if info.name in node.input else None  # a subgraph reads it
        if port is not None and changed == ports[min(port, len(ports) - 1)].type_str:
            info.type.tensor_type.elem_type = dtype
        if inputs and isinstance(value, (np.ndarray, np.generic)):
            kind = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
            value = np.asarray(value).astype(str if kind == object else kind)
            constants.append(numpy_helper.from_array(value, info.name))
        else:
            inputs.append(info)
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    model = helper.make_model(helper.make_graph([node], "g", inputs, outputs, constants),
                              opset_imports=[helper.make_opsetid("", opset)], ir_version=13 if opset > 23 else 10)
    try:
        model = onnx.shape_inference.infer_shapes(model)
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return None
    return model


def models(op, cases):
    """What is said of each, and the model: all examples, and one of them with all of its types."""
    plain = []
    for case in cases:
        for opset in (NEWEST, max(1, case.model.opset_import[0].version)):
            model = one_node(case, opset)
            if model:
                yield case.name, model
                plain.append((case, opset))
                break
    for case, opset in plain[:1]:
        schema = defs.get_schema(op, opset, "")
        for parameter in schema.type_constraints:
            for name in parameter.allowed_type_strs:
                dtype = TensorProto.DataType.Value(name[7:-1].upper()) if name.startswith("tensor(") else 0
                changed = dtype and one_node(case, opset, parameter.type_param_str, dtype)
                if changed:
                    yield f"{parameter.type_param_str} = {name}", changed


def written(model, opset):
    """What is wrong, or None."""
    onnx.save(model, "m.onnx")
    done = subprocess.run([QUENCH, "convert", "-q", "m.onnx", "out.onnx", "--opset", str(opset), "--no-pass", "all"],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        return None if done.returncode in (1, 3) else f"exit code {done.returncode}"
    try:
        onnx.checker.check_model(onnx.load("out.onnx"), full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        return str(error).splitlines()[0]
    return None


def main():
    warnings.simplefilter("ignore")
    history = {}
    for schema in defs.get_all_schemas_with_history():
        if not schema.domain:
            history.setdefault(schema.name, set()).add(schema.since_version)
    bad, tried = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for op, cases in examples().items():
            # The last opset of each form is the one whose neighbours know the most.
            targets = {v - 1 for v in history[op] if 1 < v <= LATEST_WRITTEN} | {min(LATEST_WRITTEN, *history[op]), LATEST_WRITTEN}
            for what, model in models(op, cases):
                for opset in sorted(targets):
                    wrong = written(model, opset)
                    tried += 1
                    bad += wrong is not None
                    if wrong:
                        print(f"{op}, {what}, to opset {opset}: {wrong}")
    print(f"{tried} tried, {bad} bad")
    return bad > 0 or tried < 5000


if __name__ == "__main__":
    sys.exit(main())
