"""script.py: what an infer function written in Python costs beside the same data read by quench itself (quant of
MobileNet v1 with 100 pictures of a .npy file, batches of 1, 3 and 10), and what five methods with two numbers of
iterations cost beside one float pass and ten integer ones. They take turns; the best of each counts. With --check the
exit code tells whether the function costs at most 1.15 times as much and gives the same file, and the ten strategies at
most 1.5 times the passes."""

import argparse
import filecmp
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

import models
from startup import run

MODEL, COUNT = "mobilenet_v1", 100
BATCHES = (1, 3, 10)
SCRIPT, STRATEGIES = 1.15, 1.5
METHODS = ("mse", "min_max", "kl", "kl_v2", "percentile")
FUNCTION = '''
import numpy as np
from onnx_quantize_tool.common.register import onnx_infer_func

@onnx_infer_func.register("feed")
def feed(executor):
    data = np.load(executor.dataset, mmap_mode="r")
    classes, size = [], executor.batch_size
    for i in range(0, len(data), size):
        outputs = executor.forward(data[i : i + size])
        classes += list(np.argmax(outputs[0].reshape(len(outputs[0]), -1), axis=1))
        if executor.early_stop_flag:
            break
'''


def write_pictures(folder):
    """The model's inputs, made by quench of the pictures that it is calibrated with."""
    _, shapes, _ = models.MODELS[MODEL]
    (shape,) = shapes.values()
    sides = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", *shape[1:]]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", sides[:1], sides[1:])
    path = os.path.join(folder, "identity.onnx")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    run([models.QUENCH, "infer", "-q", path, *models.calibration(MODEL), "-o", folder])
    return os.path.join(folder, "y.npy")


def quant(folder, name, *options):
    """A run of its own: nothing is there before."""
    place = os.path.join(folder, name)
    cache = ["-cd", os.path.join(place, "cache")]
    return ["sh", "-c", 'rm -rf "$0"; mkdir "$0"; exec "$@"', place, models.QUENCH, "quant", "-q", "-m",
            models.path_of(MODEL), "--save-dir", place, *cache, *options]


def commands(folder, data):
    script = os.path.join(folder, "feed.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(FUNCTION)
    method = ("-qm", "kl")
    yield "native", quant(folder, "native", *method, "-d", data, "-i", str(COUNT))
    for size in BATCHES:
        yield f"script -bs {size}", quant(folder, f"script{size}", *method, "-uds", script, "-if", "feed",
                                          "-d", data, "-bs", str(size), "-i", str(-(-COUNT // size)))
    yield "float pass", [models.QUENCH, "calibrate", "-q", "-m", models.path_of(MODEL), "-d", data, "-o",
                         os.path.join(folder, "stats")]
    made = os.path.join(folder, "native", os.path.basename(models.path_of(MODEL))[:-5] + "_quantize.onnx")
    yield "integer pass", [models.QUENCH, "infer", "-q", made, "-d", data, "-o", folder]
    yield "ten strategies", quant(folder, "ten", "-d", data, "-qm", *METHODS, "-i", str(COUNT // 2),
                                  str(COUNT))


def measure(rows, rounds):
    best = {name: float("inf") for name, _ in rows}
    for _ in range(rounds):
        for name, command in rows:
            best[name] = min(best[name], run(command)[0])
    return best


def same_file(folder, name):
    files = [os.path.join(folder, place, os.path.basename(models.path_of(MODEL))[:-5] + "_quantize.onnx")
             for place in ("native", name)]
    return filecmp.cmp(*files, shallow=False)


def judge(folder, best):
    wrong = []
    print(f"{'quant':16}{'seconds':>10}{'/native':>10}")
    print(f"{'native':16}{best['native']:10.2f}{1:10.2f}")
    for size in BATCHES:
        share = best[f"script -bs {size}"] / best["native"]
        same = same_file(folder, f"script{size}")
        print(f"{f'script -bs {size}':16}{best[f'script -bs {size}']:10.2f}{share:10.2f}  "
              f"{'the same file' if same else 'another file'}")
        if share > SCRIPT or not same:
            wrong.append(f"script -bs {size}: {share:.2f}, wanted {SCRIPT}; same file: {same}")
    passes = best["float pass"] + 10 * best["integer pass"]
    share = best["ten strategies"] / passes
    print(f"\nfloat pass {best['float pass']:.2f} s, integer pass {best['integer pass']:.2f} s, ten strategies "
          f"{best['ten strategies']:.2f} s: {share:.2f} times one float pass and ten integer ones")
    if share > STRATEGIES:
        wrong.append(f"ten strategies: {share:.2f}, wanted {STRATEGIES}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(".", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--check", action="store_true", help="fail where it takes too much")
    arguments = parser.parse_args()
    lacks = models.lacks_data("script", arguments)
    if lacks is not None:
        return lacks
    os.environ.setdefault("QUENCH_PYTHON", sys.executable)
    with tempfile.TemporaryDirectory() as folder:
        data = write_pictures(folder)
        assert len(np.load(data, mmap_mode="r")) == COUNT
        wrong = judge(folder, measure(list(commands(folder, data)), arguments.rounds))
    for line in wrong if arguments.check else []:
        print("not reached:", line)
    return 1 if arguments.check and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
