"""by_hand.py: files of one operator, for those that the converter does not write."""

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema


def tensor(name, shape, dtype="FLOAT32", data=None, variable=False):
    t = schema.TensorT()
    t.name, t.shape, t.isVariable = name.encode(), list(shape), variable
    if data is not None:
        dtype = {"float32": "FLOAT32", "int32": "INT32", "int64": "INT64", "int8": "INT8", "int16": "INT16",
                 "uint8": "UINT8", "bool": "BOOL"}[data.dtype.name]
        data = data.tobytes()
    t.type = getattr(schema.TensorType, dtype)
    return t, data


def quantized(name, shape, scale, zero=0, dtype="INT8", data=None, axis=0, variable=False):
    t, data = tensor(name, shape, dtype, data, variable)
    t.quantization = schema.QuantizationParametersT()
    t.quantization.scale = list(np.atleast_1d(np.float32(scale)))
    t.quantization.zeroPoint = list(np.broadcast_to(zero, (len(t.quantization.scale),)))
    t.quantization.quantizedDimension = axis
    return t, data


def one(name, inputs, outputs, options=None, custom=None, version=1, kept=None, **values):
    """A model of one operator. A tensor with contents is a constant, None is left out, others are inputs of the
    model, whose outputs are the first `kept` of the operator's."""
    model, graph, code, op = schema.ModelT(), schema.SubGraphT(), schema.OperatorCodeT(), schema.OperatorT()
    model.version, model.subgraphs, model.operatorCodes = 3, [graph], [code]
    builtin = getattr(schema.BuiltinOperator, name, schema.BuiltinOperator.CUSTOM)
    code.builtinCode, code.deprecatedBuiltinCode, code.version = builtin, min(builtin, 127), version
    if builtin == schema.BuiltinOperator.CUSTOM:
        code.customCode = name.encode()
    model.buffers, graph.tensors, graph.inputs, op.inputs, op.outputs = [schema.BufferT()], [], [], [], []
    for place, listing in ((op.inputs, inputs), (op.outputs, outputs)):
        for item in listing:
            if item is None:
                place.append(-1)
                continue
            t, data = item
            place.append(len(graph.tensors))
            if data is not None:
                buffer = schema.BufferT()
                buffer.data = np.frombuffer(data, np.uint8)
                t.buffer = len(model.buffers)
                model.buffers.append(buffer)
            elif place is op.inputs and not t.isVariable:
                graph.inputs.append(len(graph.tensors))
            graph.tensors.append(t)
    graph.outputs, graph.operators = list(op.outputs)[:kept], [op]
    if options:
        op.builtinOptionsType = getattr(schema.BuiltinOptions, options + "Options")
        op.builtinOptions = getattr(schema, options + "OptionsT")()
        for key, value in values.items():
            assert hasattr(op.builtinOptions, key), key
            setattr(op.builtinOptions, key, value)
    if custom is not None:
        op.customOptions = np.frombuffer(custom, np.uint8)
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())
