"""options.py: PaddlePaddle's files and options without PaddlePaddle: shapes that may be set, where parameters are looked for,
parameters of another net, files cut short, operators nobody knows."""

import os
import shutil
import subprocess
import sys
import tempfile

import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "examples", "knight"))
import make_paddle  # noqa: E402

QUENCH = os.environ["QUENCH"]
WRONG = []


def convert(model, *flags):
    """(exit code, message, model or None)"""
    done = subprocess.run([QUENCH, "convert", model, "out.onnx", *flags], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr, onnx.load("out.onnx") if done.returncode == 0 else None


def expect(what, have, code, *words):
    if have[0] != code or not all(word in have[1] for word in words):
        WRONG.append(what)
        print(f"wrong: {what}: exit code {have[0]}: {have[1]}")


def shapes():
    have = convert("net/resnet18.pdmodel", "-is", "10", "3", "224", "224")
    expect("open dimensions are set", have, 0)
    if have[2] and [d.dim_value for d in have[2].graph.input[0].type.tensor_type.shape.dim] != [10, 3, 224, 224]:
        WRONG.append("the input has not the shape that was asked for")
    expect("a fixed dimension", convert("net/resnet18.pdmodel", "-is", "10", "9", "224", "224"), 1, "'image'", "dimension 1 is 3", "become 9")
    expect("another rank", convert("net/resnet18.pdmodel", "-is", "10", "3", "224"), 1, "3 dimensions")
    expect("too many shapes", convert("net/resnet18.pdmodel", "-is", "1", "3", "8", "8", "-is", "1", "2"), 1, "2 shapes", "1 input")


def parameters():
    expect("a name of their own", convert("net/resnet18.pdmodel", "-w", "weights"), 0)
    os.makedirs("old")
    shutil.copy("net/resnet18.pdmodel", "old/__model__")
    expect("no parameters at all", convert("old"), 1, "conv2d_0.w_0")
    shutil.copy("weights", "old/__params__")
    expect("a folder", convert("old"), 0)
    make_paddle.write("other", classes=7)
    expect("of another net", convert("net/resnet18.pdmodel", "-w", "other/resnet18.pdiparams"), 1,
           "'linear.b_0'", "elementwise_add_13", "float32[10]", "float32[7]")


def broken():
    with open("net/resnet18.pdiparams", "rb") as file:
        data = file.read()
    for size in (0, 3, 12, 20, 30, len(data) // 2, len(data) - 1):
        with open("cut", "wb") as file:
            file.write(data[:size])
        expect(f"{size} bytes of the parameters", convert("net/resnet18.pdmodel", "-w", "cut"), 1)
    with open("cut", "wb") as file:
        file.write(data + b"\0")
    expect("a byte too many", convert("net/resnet18.pdmodel", "-w", "cut"), 1, "goes on for 1 bytes")
    with open("net/resnet18.pdmodel", "rb") as file:
        data = file.read()
    for size in range(7, len(data), 97):
        with open("cut.pdmodel", "wb") as file:
            file.write(data[:size])
        expect(f"{size} bytes of the program", convert("cut.pdmodel", "-f", "paddle", "-w", "weights"), 1)


def unknown():
    """All at once, with the layer and what there is to say."""
    p = make_paddle.Program()
    image = p.variable("image", [2, 3])
    p.operator("feed", {"X": "feed"}, {"Out": image}, {"col": 0})
    x = p.add("dreaming", {"X": image}, "Out")
    x = p.add("relu", {"X": x}, "Out")
    x = p.add("dropout", {"X": x}, "Out", dropout_prob=0.5, is_test=False)
    x = p.add("guessing", {"X": x}, "Out")
    p.operator("fetch", {"X": x}, {"Out": "fetch"}, {"col": 0})
    p.save("unknown")
    expect("unknown operators", convert("unknown.pdmodel"), 3, "3 layers", "dreaming_0.tmp_0", "dropout", "training", "guessing_3.tmp_0")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        make_paddle.write("net")
        shutil.copy("net/resnet18.pdiparams", "weights")
        for test in (shapes, parameters, broken, unknown):
            test()
    print("\n".join(WRONG) or "PaddlePaddle's files and options do what they are to do")
    sys.exit(bool(WRONG))


if __name__ == "__main__":
    main()
