"""recurrent.py STREAM: recurrent layers as integers, from the command to the probabilities.

Small classifiers of text (embedding, LSTM or GRU, one or two directions, dense, Softmax) and, where its data are, silero's
voice detector, whose state goes from chunk to chunk: quantized with 8 bits, for quench and for a chip, their
probabilities are on average within .01 of float's. `verify` holds the file to the reference on every instruction set,
onnx's checker takes it, and ONNX Runtime, which computes the layers in float between the same pairs, is as near to
float."""

import os
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "bench"), os.path.join(HERE, "..")]
import models

try:
    import onnx
    import preprocess
    import runtime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print(f"skipped: {error} (scripts/venv installs what is needed)")
    sys.exit(77)

BOUND = 0.01
CHIP = ["--chip", "TX5368AV200"]
WORDS, EMBEDDED, HIDDEN, STEPS, CLASSES, SAMPLES = 500, 48, 96, 24, 4, 64
# operator, directions, attributes
TEXTS = {
    "lstm": ("LSTM", 1, {}),
    "lstm_both": ("LSTM", 2, {}),
    "gru": ("GRU", 1, {}),
    "gru_both": ("GRU", 2, {"linear_before_reset": 1}),
}


# ---- Classifiers of text -------------------------------------------------------------------------------------------


def weights_of(rng, operator, directions):
    """As a framework begins with them, somewhat larger: what is learnt has gates that open and close."""
    rows, size = {"LSTM": 4, "GRU": 3}[operator] * HIDDEN, 2 / np.sqrt(HIDDEN)
    shapes = {"W": (directions, rows, EMBEDDED), "R": (directions, rows, HIDDEN), "B": (directions, 2 * rows)}
    arrays = {name: rng.uniform(-size, size, shape) for name, shape in shapes.items()}
    arrays["embedding"] = rng.standard_normal((WORDS, EMBEDDED))
    arrays["dense"] = rng.standard_normal((directions * HIDDEN, CLASSES)) * 8 / np.sqrt(HIDDEN)
    return [numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()]


def text_model(path, name):
    operator, directions, attributes = TEXTS[name]
    nodes = [
        helper.make_node("Gather", ["embedding", "words"], ["embedded"], axis=0),
        helper.make_node("Transpose", ["embedded"], ["sequence"], perm=[1, 0, 2]),
        helper.make_node(operator, ["sequence", "W", "R", "B"], ["", "last"], name="layer", hidden_size=HIDDEN,
                         direction="bidirectional" if directions == 2 else "forward", **attributes),
        helper.make_node("Transpose", ["last"], ["by_item"], perm=[1, 0, 2]),
        helper.make_node("Flatten", ["by_item"], ["flat"], axis=1),
        helper.make_node("MatMul", ["flat", "dense"], ["scores"], name="dense"),
        helper.make_node("Softmax", ["scores"], ["classes"], axis=-1)]
    graph = helper.make_graph(
        nodes, name, [helper.make_tensor_value_info("words", TensorProto.INT64, ["batch", STEPS])],
        [helper.make_tensor_value_info("classes", TensorProto.FLOAT, ["batch", CLASSES])],
        weights_of(np.random.default_rng(len(name)), operator, directions))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def quantized(path, folder, words):
    target = [word for word in words if word in CHIP]
    rest = [word for word in words if word not in CHIP]
    subprocess.run([models.QUENCH, *target, "quant", "-q", "-m", path, "--save-dir", folder, *rest], check=True,
                   stdout=subprocess.DEVNULL)
    return os.path.join(folder, os.path.basename(path)[:-5] + "_quantize.onnx")


def verified(file, data):
    """The instruction sets on which the file is not what the reference computes."""
    isas = ("SSE41", "AVX2", "AVX512_CORE", "AVX512_CORE_VNNI")
    return [f"{file}: not the reference's bits with {isa}" for isa in isas
            if subprocess.run([models.QUENCH, "verify", "-q", file, "-d", data], check=False,
                              env=dict(os.environ, ONEDNN_MAX_CPU_ISA=isa), stdout=subprocess.DEVNULL).returncode]


def is_integer(file, operator):
    """The layer's weights are integers, and its state is quantized."""
    graph = onnx.load(file).graph
    makers = {name: node.op_type for node in graph.node for name in node.output}
    layer = next(node for node in graph.node if node.op_type == operator)
    readers = [node.op_type for node in graph.node if set(layer.output[:2]) & set(node.input)]
    return all(makers.get(name) == "DequantizeLinear" for name in layer.input[:3]) and set(readers) == {"QuantizeLinear"}


def probabilities(path, words, folder):
    np.save(os.path.join(folder, "in.npy"), words)
    subprocess.run([models.QUENCH, "infer", "-q", path, "-d", os.path.join(folder, "in.npy"), "-o", folder], check=True,
                   stdout=subprocess.DEVNULL)
    return np.load(os.path.join(folder, "classes.npy")).reshape(len(words), CLASSES)


def check_text(name, folder):
    path, data = os.path.join(folder, name + ".onnx"), os.path.join(folder, name + ".npy")
    words, wrong = np.random.default_rng(3).integers(0, WORDS, (SAMPLES, 1, STEPS)), []
    text_model(path, name)
    np.save(data, words)
    wanted = np.concatenate([runtime.session(path).run(None, {"words": item})[0] for item in words])
    for target in ([], CHIP):
        file = quantized(path, folder, ["-d", data, "-b", "8", *target, *(["-i", str(SAMPLES), "-od"] if target else [])])
        onnx.checker.check_model(file)
        ours = np.abs(probabilities(file, words, folder) - wanted).mean()
        session = runtime.session(file)
        theirs = np.abs(np.concatenate([session.run(None, {"words": item})[0] for item in words]) - wanted).mean()
        print(f"{name}{' for a chip' if target else ''}: {ours:.5f} from float, in ONNX Runtime {theirs:.5f}")
        if max(ours, theirs) > BOUND:
            wrong.append(f"{name}: more than {BOUND} from float")
        if not is_integer(file, TEXTS[name][0]):
            wrong.append(f"{name}: the layer is not of integers")
        wrong += verified(file, data)
    if wanted.max(1).mean() < .5:
        wrong.append(f"{name}: decides nothing, so that it shows nothing")
    return wrong


# ---- A layer alone -------------------------------------------------------------------------------------------------


def bare_model(path):
    """All that an LSTM may have, read and given by the model's ends."""
    rng, rows = np.random.default_rng(5), 4 * HIDDEN
    shapes = {"W": (2, rows, EMBEDDED), "R": (2, rows, HIDDEN), "B": (2, 2 * rows), "P": (2, 3 * HIDDEN)}
    weights = [numpy_helper.from_array(rng.uniform(-.1, .1, shape).astype(np.float32), name)
               for name, shape in shapes.items()]
    node = helper.make_node("LSTM", ["x", "W", "R", "B", "lengths", "h", "c", "P"], ["Y", "Y_h", "Y_c"], "layer",
                            hidden_size=HIDDEN, direction="bidirectional")
    inputs = {"x": [STEPS, 3, EMBEDDED], "h": [2, 3, HIDDEN], "c": [2, 3, HIDDEN]}
    outputs = {"Y": [STEPS, 2, 3, HIDDEN], "Y_h": [2, 3, HIDDEN], "Y_c": [2, 3, HIDDEN]}
    graph = helper.make_graph(
        [node], "layer", [*(helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in inputs.items()),
                          helper.make_tensor_value_info("lengths", TensorProto.INT32, [3])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in outputs.items()], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return inputs


def check_bare(folder):
    path, data, rng = os.path.join(folder, "bare.onnx"), os.path.join(folder, "bare"), np.random.default_rng(1)
    inputs, samples = bare_model(path), []
    os.mkdir(data)
    for i in range(16):
        samples.append({name: rng.uniform(-1, 1, dims).astype(np.float32) for name, dims in inputs.items()})
        samples[-1]["lengths"] = rng.integers(0, STEPS + 1, 3).astype(np.int32)
        np.savez(os.path.join(data, f"{i:02}.npz"), **samples[-1])
    file = quantized(path, folder, ["-d", data, "-b", "8"])
    onnx.checker.check_model(file)
    wrong = [] if is_integer(file, "LSTM") else ["bare: the layer is not of integers"]
    wanted, got = (runtime.session(name).run(None, samples[3]) for name in (path, file))
    far = max(float(np.abs(a - b).max()) for a, b in zip(wanted, got))
    print(f"a layer alone: in ONNX Runtime at most {far:.4f} from float")
    # The states have steps of 1 / 127 at most, weights and inputs are as fine: a few of these steps.
    return wrong + verified(file, data) + (["bare: more than .05 from float"] if far > .05 else [])


# ---- silero --------------------------------------------------------------------------------------------------------


def with_states(path, chunks):
    """Probabilities, and every chunk with the state that it meets."""
    session, state = runtime.session(path), np.zeros((2, 1, 128), np.float32)
    out, met = [], []
    for chunk in chunks:
        met.append(dict(input=chunk[None], state=state, sr=np.array(16000, np.int64)))
        p, state = session.run(None, met[-1])
        out.append(p[0, 0])
    return np.array(out), met


def check_silero(stream, folder):
    path, chunks, wrong = models.path_of("silero_vad"), preprocess.speech(), []
    wanted, met = with_states(path, chunks)
    data = os.path.join(folder, "chunks")
    os.mkdir(data)
    for i, sample in enumerate(met[::15]):
        np.savez(os.path.join(data, f"{i:03}.npz"), **sample)
    files = [os.path.join(folder, name) for name in ("in.npy", "out.npy")]
    np.save(files[0], chunks[:, None, :])
    fixed = [*CHIP, "-od", "-i", "63", "--input-shape", "input:1,576", "--input-shape", "state:2,1,128"]
    for target in (["-b", "8"], fixed):
        file = quantized(path, folder, ["-d", data, *target])
        subprocess.run([stream, file, *files], check=True)
        ours = np.abs(np.load(files[1]).ravel() - wanted).mean()
        theirs = np.abs(with_states(file, chunks)[0] - wanted).mean()
        print(f"silero{' for a chip' if target is fixed else ''}: {ours:.5f} from float, in ONNX Runtime {theirs:.5f}")
        if max(ours, theirs) > BOUND:
            wrong.append(f"silero: more than {BOUND} from float")
        if not is_integer(file, "LSTM"):
            wrong.append("silero: the layer is not of integers")
        wrong += verified(file, data)
    return wrong


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        wrong += check_bare(folder)
        for name in TEXTS:
            wrong += check_text(name, folder)
        if models.missing():
            print("without silero:", models.missing())
        else:
            wrong += check_silero(sys.argv[1], folder)
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
