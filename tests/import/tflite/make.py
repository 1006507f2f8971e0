"""make.py [CASE...], make.py xnnpack: small models that TensorFlow's converter writes, and what TensorFlow Lite's reference kernels make of
random inputs: cases/NAME.tflite and NAME.npz. Versions: tensorflow-cpu 2.21.0, ai-edge-litert 2.3.0, numpy 2.4.

The last line of the output lists every operator with the cases that have it."""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from ai_edge_litert.interpreter import Interpreter, OpResolverType  # noqa: E402

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases")
CASES = {}


def case(name, *shapes, **how):
    """Registers a function of tensors of these shapes as a case. A shape may be (shape, type, low, high)."""
    def add(function):
        CASES[name] = (function, [s if s and isinstance(s[0], tuple) else (s, "float32", -1, 1) for s in shapes], how)
        return function
    return add


def numbers(spec, seed):
    shape, dtype, low, high = spec
    shape = [n if n is not None else 2 for n in shape]
    random = np.random.RandomState(seed)
    if dtype == "bool":
        return random.randint(0, 2, shape).astype(bool)
    if dtype.startswith("int"):
        return random.randint(low, high, shape).astype(dtype)
    return (random.random_sample(shape) * (high - low) + low).astype(dtype)


def convert(function, specs, how):
    names = how.get("names", "xyzw")
    signature = [tf.TensorSpec(shape, dtype, name=names[i]) for i, (shape, dtype, _, _) in enumerate(specs)]
    concrete = tf.function(function, input_signature=signature).get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete], concrete)
    kind = how.get("kind", "float")
    if kind != "float":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if kind in ("int8", "int16"):
        converter.representative_dataset = lambda: ([numbers(s, 100 + i * 7 + j) for j, s in enumerate(specs)] for i in range(8))
        converter.target_spec.supported_ops = [
            tf.lite.OpsSet.TFLITE_BUILTINS_INT8 if kind == "int8" else
            tf.lite.OpsSet.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8 if kind == "int8" else tf.int16
    if how.get("per_tensor"):
        converter._experimental_disable_per_channel = True
    return converter.convert()


def record(name, content, specs, seed, kernels):
    """What the reference kernels give, or the default ones where those are known to be wrong; as .npz beside the model."""
    try:
        assert kernels == "reference"
        interpreter = Interpreter(model_content=content, experimental_op_resolver_type=OpResolverType.BUILTIN_REF, num_threads=1)
    except (ValueError, AssertionError):  # a few operators have one kernel only, which this set lacks
        interpreter = Interpreter(
            model_content=content, num_threads=1,
            experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    arrays = {}
    details = interpreter.get_input_details()
    inputs = [numbers(spec, seed + i) for i, spec in enumerate(specs)]
    by_name = {d["name"].split(":")[0].removeprefix("serving_default_"): d for d in details}
    for i, (spec, array) in enumerate(zip(specs, inputs)):
        detail = by_name.get("xyzw"[i], details[i] if i < len(details) else None)
        if detail["dtype"] in (np.int8, np.uint8, np.int16) and spec[1] == "float32":
            scale, zero = detail["quantization"]
            limits = np.iinfo(detail["dtype"])
            array = np.clip(np.round(array / scale) + zero, limits.min, limits.max).astype(detail["dtype"])
        interpreter.resize_tensor_input(detail["index"], array.shape)
        arrays["in:" + detail["name"]] = array
    interpreter.allocate_tensors()
    for detail in details:
        interpreter.set_tensor(detail["index"], arrays["in:" + detail["name"]])
    interpreter.invoke()
    for detail in interpreter.get_output_details():
        arrays["out:" + detail["name"]] = interpreter.get_tensor(detail["index"])
    np.savez_compressed(os.path.join(HERE, name + ".npz"), **arrays)
    return [op["op_name"] for op in interpreter._get_ops_details() if op["op_name"] != "DELEGATE"]


def record_default_kernels():
    """What XNNPACK makes of the inputs of real integer models: xnnpack.npz, which models.py compares with."""
    sys.path[:0] = [os.path.dirname(os.path.dirname(HERE))]
    from models import DATA, pictures
    with np.load(os.path.join(DATA, "tflite", "mobilenet_v1_0.25_128_quant", "ref.npz")) as arrays:
        inputs = {"tflite/mobilenet_v1_0.25_128_quant/mobilenet_v1_0.25_128_quant": arrays["in:input"],
                  "tensorflow/mlperf_resnet8/pretrainedResnet_quant": pictures("i1")}
    outputs = {}
    for path, array in inputs.items():
        interpreter = Interpreter(os.path.join(DATA, path + ".tflite"), num_threads=1)
        interpreter.allocate_tensors()
        given = []
        for sample in array:
            interpreter.set_tensor(interpreter.get_input_details()[0]["index"], sample[None])
            interpreter.invoke()
            given.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
        outputs[os.path.basename(path) + "/" + interpreter.get_output_details()[0]["name"]] = np.concatenate(given)
    np.savez_compressed(os.path.join(os.path.dirname(HERE), "xnnpack.npz"), **outputs)


def main():
    if sys.argv[1:] == ["xnnpack"]:
        return record_default_kernels()
    os.makedirs(HERE, exist_ok=True)
    found = {}
    for i, (name, (function, specs, how)) in enumerate(CASES.items()):
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        try:
            content = function() if how.get("raw") else convert(function, specs, how)
            ops = record(name, how["twin"]() if "twin" in how else content, specs, 1000 + 10 * i, how.get("kernels", "reference"))
        except Exception as error:
            print(f"FAILED {name}: {str(error)[-600:]}")
            continue
        with open(os.path.join(HERE, name + ".tflite"), "wb") as file:
            file.write(content)
        print(f"{name}: {len(content)} bytes: {' '.join(ops)}", flush=True)
        for op in ops:
            found.setdefault(op, []).append(name)
    print({op: sorted(set(names)) for op, names in sorted(found.items())})


from models_made import *  # noqa: E402,F401,F403

if __name__ == "__main__":
    main()
