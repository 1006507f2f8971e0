"""Infer functions in Python: what scripts written for the Knight tool do, unchanged."""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

QUENCH = os.environ["QUENCH"]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL = os.path.join(ROOT, "examples", "fashion.onnx")

# The manual's function as it is printed there, with the import that it lacks.
SAMPLE = '''
import numpy as np
from onnx_quantize_tool.common.register import onnx_infer_func

@ onnx_infer_func.register("infer_cls_model")
def infer_cls_model(executor):
    batch_size = executor.batch_size
    test_data = 'data/imagenet_input_b10_s1.npy'
    test_label = 'data/imagenet_label_b10_s1.npy'
    input_data = np.load(test_data).astype(np.float32)
    label_data = np.load(test_label).astype(np.float32)
    val_loader = zip(input_data, label_data)
    total_correct_num = 0
    total_num = 0
    for i, (input_data, label) in enumerate(val_loader):
        input_data = input_data[:batch_size]
        label = label[:batch_size]
        output = executor.forward(input_data)
        pred = np.argmax(output[0], axis=1)
        correct_num = (pred == label).sum()
        num = (pred >= 0).sum()
        total_correct_num += correct_num
        total_num += num
        acc = (100.0 * correct_num) / num
        print("acc:", acc)
        if i + 1 == executor.iteration:
            break
        if executor.early_stop_flag == True:
            break
    total_acc = (100.0 * total_correct_num) / total_num
    print("total_acc:", total_acc)
    return total_acc
'''

OTHERS = '''
import helper
import numpy as np
from onnx_quantize_tool.common.register import onnx_infer_func, pytorch_model
from onnx_quantize_tool.utils.constants import *

@onnx_infer_func.register("facts")
def facts(executor):
    executor.init_shape_info()
    name = executor.input_nodes[0]
    assert executor.shape_dicts[name] == [2, 1, 28, 28], executor.shape_dicts[name]
    assert NP_TYPE_DICT[executor.input_types[name]] is np.float32
    nodes = executor.output_name_to_node_name()
    assert nodes and all(node in executor.shape_dicts for node in nodes.values())
    assert executor.output_node_list[0] in nodes
    assert executor.run_mode == "quant" and executor.gpu == -1 and executor.save_dir == "facts"
    assert executor.user_defined_script.endswith("others.py") and executor.dataset == "rows"
    assert executor.input_configs_dict == [] and executor.iteration == 3
    assert executor.early_stop_flag is False
    out = executor.forward(np.zeros((2, 1, 28, 28), np.uint8))
    assert isinstance(out, list) and out[0].shape == (2, 10) and out[0].dtype == np.float32
    kept = out[0].copy()
    executor.forward(np.full((6, 28, 28, 1), 7.0).transpose(0, 3, 1, 2))
    assert (kept == out[0]).all()
    executor.forward(np.zeros((1, 1, 28, 28), np.int64))
    return None

@onnx_infer_func.register("rows")
def rows(executor):
    x = np.load("rows.npy")
    for i in range(executor.iteration):
        executor.forward(x[i : i + 1])
    return 1

@onnx_infer_func.register("raises")
def raises(executor):
    raise ValueError("of the user")

@onnx_infer_func.register("shape")
def shape(executor):
    executor.forward(np.zeros((1, 28, 28), np.float32))

@onnx_infer_func.register("lossy")
def lossy(executor):
    executor.forward(np.full((1, 1, 28, 28), 1e300))

@onnx_infer_func.register("lazy")
def lazy(executor):
    return 1

@onnx_infer_func.register("crowds")
def crowds(executor):
    import os, subprocess
    words = [os.environ["QUENCH"], "quant", "-m", os.environ["MODEL"], "--save-dir", executor.save_dir]
    other = subprocess.run(words, capture_output=True, text=True)
    assert other.returncode == 1 and "in use by another run" in other.stderr, other
    executor.forward(np.zeros((1, 1, 28, 28), np.float32))

@onnx_infer_func.register("goes_on")
def goes_on(executor):
    try:
        executor.forward(np.full((1, 1, 28, 28), np.float32("inf")))
    except Exception:
        pass
    executor.forward(np.zeros((1, 1, 28, 28), np.float32))

@onnx_infer_func.register("leaves")
def leaves(executor):
    raise SystemExit(7)

@onnx_infer_func.register("ends")
def ends(executor):
    raise SystemExit(0)

@onnx_infer_func.register("vanishes")
def vanishes(executor):
    import os
    os._exit(0)

@onnx_infer_func.register("pair")
def pair(executor):
    executor.forward(np.zeros((1, 1, 28, 28), np.float32))
    return 1.0, 2.0
'''

# Stops itself before forward STOP as Ctrl-C does, and feeds other data from forward OTHER on.
STOPS = '''
import os, signal
import numpy as np
from onnx_quantize_tool.common.register import onnx_infer_func

@onnx_infer_func.register("stops")
def stops(executor):
    stop, other = (int(os.environ.get(name, "99")) for name in ("STOP", "OTHER"))
    size, hits = executor.batch_size, 0
    for i in range(executor.iteration):
        if i == stop and executor._stage == "float":
            os.kill(os.getpid(), signal.SIGINT)
        x = np.load("rows.npy")[i * size : (i + 1) * size]
        outputs = executor.forward(x if i < other else 1 - x)
        hits += int((np.argmax(outputs[0], axis=1) % 2).sum())
    return hits + 1
'''

# The first quantized model hits nothing, the second cannot be measured, the third is as good as float.
UNEVEN = '''
import numpy as np
from onnx_quantize_tool.common.register import onnx_infer_func

results = []

@onnx_infer_func.register("uneven")
def uneven(executor):
    for i in range(executor.iteration):
        executor.forward(np.load("rows.npy")[i : i + 1])
    if executor._stage == "float":
        return 50.0
    results.append(0.0 if not results else 50.0)
    if len(results) == 2:
        raise ValueError("no labels for this one")
    return results[-1]
'''

# The first half of the samples is right, whoever looks: a pass that is stopped early has a better accuracy.
EARLY = '''
import numpy as np
from onnx_quantize_tool.common.register import onnx_infer_func

@onnx_infer_func.register("early")
def early(executor):
    seen = 0
    for i in range(executor.iteration):
        executor.forward(np.full((1, 1, 28, 28), 0.5, np.float32))
        seen += 1
        if executor.early_stop_flag:
            break
    return 100.0 * min(seen, executor.iteration // 2) / seen

calls = []

@onnx_infer_func.register("by_call")
def by_call(executor):
    for i in range(executor.iteration):
        executor.forward(np.load("rows.npy")[i : i + 1])
    calls.append(executor._stage)
    return [80.0, 79.0, 84.0, 72.0][len(calls) - 1]

@onnx_infer_func.register("other_end")
def other_end(executor):
    count = executor.iteration if executor._stage == "float" else executor.iteration - 1
    for i in range(count):
        executor.forward(np.load("rows.npy")[i : i + 1])
    return 50.0 if count == executor.iteration else 60.0
'''

NUMBERS = '''
import numpy as np
from onnx_quantize_tool.common.register import onnx_infer_func

@onnx_infer_func.register("doubles")
def doubles(executor):
    x = np.load("rows.npy").astype(np.float64) + 1e-9
    for i in range(executor.iteration):
        executor.forward(x[i : i + 1])
    return (np.array([5.0]),)

@onnx_infer_func.register("floats")
def floats(executor):
    x = np.load("rows.npy") - 0.3
    return float(sum(executor.forward(x[i : i + 1])[0].sum() for i in range(executor.iteration)))

@onnx_infer_func.register("key")
def key(executor):
    return {}["labels"]

@onnx_infer_func.register("index")
def index(executor):
    return [][3]
'''

COMMON = '''
import numpy as np
from onnx_quantize_tool.common.register import onnx_infer_func

@onnx_infer_func.register("infer_default")
def infer_default(executor):
    executor.forward(np.zeros((1, 1, 28, 28), np.float32))
    print(executor.input_configs_dict[0]["data_dir"], 42)
'''


def run(*words, code=0, **names):
    done = subprocess.run(
        [QUENCH, "quant", "-m", MODEL, *words],
        capture_output=True,
        text=True,
        env={**os.environ, "QUENCH_PYTHON": sys.executable, "MODEL": MODEL, **names},
    )
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return done


def same(a, b):
    name = "fashion_quantize.onnx"
    with open(os.path.join(a, name), "rb") as one, open(os.path.join(b, name), "rb") as other:
        assert one.read() == other.read(), (a, b)


def make_files():
    numbers = np.random.default_rng(1)
    x = numbers.random((3, 10, 1, 28, 28), np.float32)
    os.makedirs("data")
    os.makedirs("scripts")
    np.save("data/imagenet_input_b10_s1.npy", x)
    np.save("data/imagenet_label_b10_s1.npy", numbers.integers(0, 10, (3, 10)))
    np.save("rows.npy", x.reshape(30, 1, 28, 28))
    for name, text in (("demo", SAMPLE), ("others", OTHERS), ("stops", STOPS), ("uneven", UNEVEN),
                       ("early", EARLY), ("numbers", NUMBERS),
                       ("helper", "")):
        with open(f"scripts/{name}.py", "w", encoding="utf-8") as file:
            file.write(text)


def test_sample():
    demo = ("-uds", "scripts/demo.py", "-if", "infer_cls_model", "-bs", "10", "-qm", "kl")
    done = run(*demo, "-i", "2", "--save-dir", "demo")
    assert done.stdout.count("total_acc:") == 2 and done.stdout.count("acc:") == 6, done.stdout
    run("-d", "rows.npy", "-bs", "10", "-qm", "kl", "-i", "2", "--save-dir", "native")
    same("demo", "native")
    done = run("-r", "infer", *demo, "-i", "3", "--save-dir", "demo")
    assert "accuracy" in done.stdout


def test_strategies():
    demo = ("-uds", "scripts/demo.py", "-if", "infer_cls_model", "-bs", "10", "-qm", "kl", "mse")
    done = run(*demo, "-i", "1", "3", "--save-dir", "many")
    assert "acc:" not in done.stdout and done.stderr.count(": done, loss") == 4, done
    run("-d", "rows.npy", "-bs", "10", "-qm", "mse", "-i", "1", "--save-dir", "native")
    same("many/mse_1", "native")
    done = run(*demo, "-i", "1", "3", "--save-dir", "many")
    assert "the float model is not run again" in done.stderr
    with open("scripts/demo.py", "a", encoding="utf-8") as file:
        file.write("# changed\n")
    done = run(*demo, "-i", "1", "3", "--save-dir", "many")
    assert "another infer function" in done.stderr and "made anew" in done.stderr, done.stderr


def test_uneven():
    """An accuracy of 0 is one, and the worst there is; what fails stands last, with its reason."""
    words = ("-uds", "scripts/uneven.py", "-if", "uneven", "-qm", "kl", "mse", "min_max", "-i", "2")
    done = run(*words, "--save-dir", "uneven", "--json")
    report = json.loads(done.stdout)
    good, zero, failed = report["strategies"]
    assert report["float_accuracy"] == 50, report
    assert (good["quant_mode"], good["quantization_loss"], good["accuracy"]) == ("min_max", 0, 50)
    assert (zero["quant_mode"], zero["quantization_loss"], zero["accuracy"]) == ("kl", 100, 0)
    assert (failed["quant_mode"], failed["quantization_loss"]) == ("mse", "Fail"), failed
    assert "accuracy" not in failed and "tensor_error" not in failed, failed
    assert [row["strategy"] for row in report["failures"]] == ["mse_2"], report
    assert "no labels for this one" in report["failures"][0]["why"], report
    assert "mse_2: done, Fail" in done.stderr and "kl_2: done, loss 100.0000 %" in done.stderr
    done = run(*words, "--save-dir", "uneven")
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["mse", "2", "8", "Fail"] in rows, done.stdout
    assert [row[6] for row in rows if row[:2] == ["kl", "2"]] == ["0.0000"], done.stdout
    assert any(row[:1] == ["mse_2"] and "labels" in row for row in rows), done.stdout


def test_early_stop():
    """The loss compares the same samples, for every strategy."""
    words = ("-uds", "scripts/early.py", "-if", "early", "-i", "20", "--json")
    for methods in (("kl",), ("kl", "min_max", "mse")):
        report = json.loads(run(*words, "-qm", *methods, "--save-dir", "early").stdout)
        assert report["float_accuracy"] == 50 and report["forwards"] == 20, report
        assert report["compared_forwards"] < 20 and report["float_accuracy_on_these"] > 50, report
        rows = report["strategies"]
        assert {row["accuracy"] for row in rows} == {report["float_accuracy_on_these"]}, report
        assert {row["quantization_loss"] for row in rows} == {0} == {row["change"] for row in rows}, report
    done = run(*words[:3], "other_end", "-i", "4", "-qm", "kl", "--save-dir", "early", "--json")
    (row,) = json.loads(done.stdout)["strategies"]
    assert "change" not in row and abs(row["quantization_loss"] - 100 * row["tensor_error"]) < 1e-3, row
    assert "stopped after 3 of 4 forwards" in done.stderr, done.stderr


def test_no_function():
    """A script without a function: infer_auto feeds a quantization, a template needs none; -r infer has nothing to run."""
    script = ("-uds", "scripts/numbers.py")
    done = run(*script, "-if", "infer_auto", "-i", "2", "--save-dir", "auto")
    assert "random numbers" in done.stderr and "registers no" not in done.stderr, done.stderr
    done = run(*script, "-i", "2", "--save-dir", "auto")
    assert "note: --user-defined-script has no effect here without --infer-func: infer_auto" in done.stderr, done.stderr
    done = run("-uds", "infer_auto.py", "-if", "infer_auto", "-i", "2", "--save-dir", "auto")
    assert "no effect" not in run(*script, "-gt", "--save-dir", "auto").stderr
    assert "needs --infer-func" in run(*script, "-r", "infer", code=2).stderr
    assert "registers no infer function" in run(*script, "-if", "none", "--save-dir", "auto", code=2).stderr


def test_numbers():
    """What converts is converted, and said once; one number in a list or array is an accuracy."""
    done = run("-uds", "scripts/numbers.py", "-if", "doubles", "-i", "3", "-qm", "kl", "--save-dir", "doubles")
    assert done.stderr.count("the numbers of float64 that it is given are rounded") == 1, done.stderr
    assert "float accuracy 5.0000" in " ".join(done.stdout.split()), done.stdout
    for name, words in (("key", "KeyError: 'labels'"), ("index", "IndexError: list index out of range")):
        done = run("-uds", "scripts/numbers.py", "-if", name, "-i", "3", "--save-dir", "doubles", code=1)
        assert f"quench: infer function '{name}': {words}" in done.stderr, done.stderr


def test_integer_inputs():
    """With the -qid of then a quantized model is run on the float data, quantized for it."""
    words = ("-uds", "scripts/numbers.py", "-if", "floats", "-i", "6", "-b", "8", "-qm", "mse")
    made = json.loads(run(*words, "-qid", "uint8", "--save-dir", "typed", "--json").stdout)
    (row,) = made["input_scales"]
    info = subprocess.run([QUENCH, "inspect", made["file"]], capture_output=True, text=True).stdout.split()
    assert info[info.index("quench.input_scale.image") + 1] == row["scale"] and float(row["scale"]) < 0.1, info
    assert info[info.index("quench.input_zero_point.image") + 1] == str(row["zero_point"]) != "0", info
    run(*words, "--save-dir", "untyped")
    scores = []
    for folder, more in (("typed", ("-qid", "uint8")), ("untyped", ())):
        done = subprocess.run([QUENCH, "quant", "-r", "infer", "-m", f"{folder}/fashion_quantize.onnx", *words[:6], *more],
                              capture_output=True, text=True, env={**os.environ, "QUENCH_PYTHON": sys.executable})
        assert "no effect" not in done.stderr, done.stderr
        scores.append(done.stdout.split("accuracy")[1].split()[0])
    assert scores[0] == scores[1], scores


def test_scale_file():
    """With scales from a file the function runs the integer model, and its accuracy is told; what changed the model is asked for."""
    words = ("-uds", "scripts/numbers.py", "-if", "floats", "-i", "6", "--json")
    made = json.loads(run(*words, "-b", "8", "-qm", "kl", "-gsj", "--save-dir", "scaled").stdout)
    (row,) = made["strategies"]
    again = json.loads(run(*words, "-lsj", "scaled/fashion_scales.json", "--save-dir", "rescaled").stdout)
    (other,) = again["strategies"]
    assert other["accuracy"] == row["accuracy"] and "quantization_loss" not in other, (row, other)
    same("scaled", "rescaled")
    run("-d", "rows.npy", "-i", "4", "--mean", "0.5", "--std", "0.5", "-gsj", "--save-dir", "centred")
    scales = ("-lsj", "centred/fashion_scales.json", "--save-dir", "again")
    assert "they were made with --mean 0.5 --std 0.5, which is to be given again" in run(*scales, code=1).stderr
    run(*scales, "--mean", "0.5", "--std", "0.5")
    same("centred", "again")


def test_gains():
    """What is better than float is no loss: it never stands behind what is worse."""
    words = ("-uds", "scripts/early.py", "-if", "by_call", "-i", "2", "--json", "-qm", "kl", "mse", "min_max")
    rows = json.loads(run(*words, "--save-dir", "gains").stdout)["strategies"]
    found = [(row["quant_mode"], row["quantization_loss"], row["change"]) for row in rows]
    assert found == [("mse", 5, 5), ("kl", 1.25, -1.25), ("min_max", 10, -10)], found


def test_one_by_one():
    run("-uds", "scripts/others.py", "-if", "rows", "-i", "6", "-qm", "kl", "--save-dir", "rows")
    run("-d", "rows.npy", "-i", "6", "-qm", "kl", "--save-dir", "native")
    same("rows", "native")


def test_facts():
    run("-uds", "scripts/others.py", "-if", "facts", "-d", "rows", "-bs", "2", "-i", "3",
        "--save-dir", "facts")


def test_two_at_once():
    run("-uds", "scripts/others.py", "-if", "crowds", "--save-dir", "crowd")
    assert os.path.exists("crowd/fashion_quantize.onnx")
    assert not os.path.exists("crowd/.quench.lock")


def test_built_in():
    """A file that is there and has the function wins; else the built-in one serves."""
    words = ("-uds", "scripts/infer_common.py", "-if", "infer_default", "-rc", "c.json", "-r", "infer")
    os.makedirs("npy/x")
    np.save("npy/x/0.npy", np.zeros((1, 28, 28), np.float32))
    with open("c.json", "w", encoding="utf-8") as file:
        json.dump({"quant": {"input-configs": [{"data_dir": "npy/x"}]}}, file)
    run(*words)
    with open("scripts/infer_common.py", "w", encoding="utf-8") as file:
        file.write("")
    assert "infer_default" in run(*words).stdout
    with open("scripts/infer_common.py", "w", encoding="utf-8") as file:
        file.write(COMMON)
    assert "npy/x 42" in run(*words).stdout


def test_stopped():
    """A float pass that was stopped goes on where it was, and gives the same files; with other data it does not."""
    words = ("-uds", "scripts/stops.py", "-if", "stops", "-qm", "kl", "mse")
    stops = {"1": (("8", None),), "3": (("2", None), ("4", 2), ("1", 4), ("8", 4))}
    for size, count in (("1", ("5", "10")), ("3", ("4", "9"))):
        words = (*words[:7], "-bs", size, "-i", *count)
        stopped = words + ("-cd", f"part{size}", "--save-dir", f"part.dir{size}")
        run(*words, "-cd", f"whole{size}", "--save-dir", f"whole.dir{size}")
        for stop, known in stops[size]:
            done = run(*stopped, code=1, STOP=stop)
            assert "cancelled" in done.stderr and not os.path.exists(f"part{size}"), done.stderr
            assert (f"going on after {known} forwards" in done.stderr) == bool(known), done.stderr
            assert not os.path.exists(f"part.dir{size}/fashion_quantize.onnx")
        done = run(*stopped)
        assert "going on after 8 forwards" in done.stderr and not os.path.exists(f"part{size}.part")
        same(f"whole.dir{size}", f"part.dir{size}")
        with open(f"whole{size}", "rb") as one, open(f"part{size}", "rb") as other:
            assert one.read() == other.read()
    for other, word in (("0", "before it was stopped"), ("3", "called once more")):
        fed = words + ("-cd", f"fed{other}", "--save-dir", f"fed.dir{other}")
        run(*fed, code=1, STOP="6")
        done = run(*fed, OTHER=other)
        assert word in done.stderr, done.stderr
        run(*words, "-cd", f"new{other}", "--save-dir", f"new.dir{other}", OTHER=other)
        same(f"fed.dir{other}", f"new.dir{other}")
    run(*words, "-cd", "again", "--save-dir", "again.dir", code=1, STOP="6")
    done = run(*words, "-per", "0.99", "-cd", "again", "--save-dir", "again.dir", "-i", "3", "5")
    assert "is not used, the float pass begins anew" in done.stderr, done.stderr


def test_bad():
    others = ("-uds", "scripts/others.py", "--save-dir", "bad", "-if")
    done = run(*others, "raises", code=1)
    assert "Traceback" in done.stderr and "of the user" in done.stderr
    assert "script.py" not in done.stderr, done.stderr
    done = run(*others, "shape", code=1)
    assert "input 'image': expected float32[" in done.stderr and "got float32[1,28,28]" in done.stderr
    done = run(*others, "lossy", code=1)
    assert "1.0000000000000001e+300 at place 0 is no float32" in done.stderr, done.stderr
    done = run(*others, "lazy", code=1)
    assert "never called forward" in done.stderr
    done = run(*others, "missing", code=2)
    assert "registers no infer function 'missing'" in done.stderr and "lazy" in done.stderr
    done = run(*others, "goes_on", code=1)
    assert "'goes_on' went on after a forward that failed" in done.stderr, done.stderr
    run(*others, "leaves", code=7)
    done = run(*others, "ends", code=1)
    assert "ended the program" in done.stderr
    done = run(*others, "vanishes", code=1)
    assert "ended the program (os._exit)" in done.stderr
    done = run(*others, "pair", code=1)
    assert "returned tuple '(1.0, 2.0)'" in done.stderr and "None is expected" in done.stderr
    assert "Traceback" not in done.stderr
    done = run("-uds", MODEL, "-if", "x", code=2)
    assert "--user-defined-script" in done.stderr and ".so" in done.stderr
    done = run("-d", "rows.npy", "-cd", "nowhere/cache", code=1)
    assert "nowhere/cache" in done.stderr and "float model: begun" not in done.stderr
    done = run("-uds", "nowhere.py", "-if", "x", code=1)
    assert "nowhere.py" in done.stderr
    assert not os.path.exists("bad/fashion_quantize.onnx")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_files()
        for test in (test_sample, test_strategies, test_uneven, test_early_stop, test_gains, test_no_function,
                     test_numbers, test_integer_inputs, test_scale_file, test_one_by_one, test_facts,
                     test_two_at_once, test_built_in, test_stopped, test_bad):
            test()
            print(f"{test.__name__}: ok")


if __name__ == "__main__":
    main()
