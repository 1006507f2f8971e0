"""examples/knight does what its README says, in a copy of it."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

from torch_python import torch_python

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENVIRONMENT = dict(os.environ)
README_COMMANDS = 10


TORCH = torch_python()


def run(command):
    """A command that needs torch says so where there is none."""
    needs_torch = "-f pytorch" in command
    python = TORCH if needs_torch and TORCH else sys.executable
    done = subprocess.run(command, shell=True, env={**ENVIRONMENT, "QUENCH_PYTHON": python}, capture_output=True, text=True)
    assert done.returncode == (3 if needs_torch and not TORCH else 0), (command, done.returncode, done.stdout, done.stderr)
    return done.stdout


def copy(box):
    """The tracked files alone: data of an earlier run would hide what make_data.sh lacks."""
    folder = os.path.join(box, "examples", "knight")
    shutil.copytree(os.path.join(ROOT, "examples", "knight"), folder,
                    ignore=shutil.ignore_patterns("data", "model", "out", "__pycache__"))
    shutil.copy(os.path.join(ROOT, "examples", "fashion.onnx"), os.path.dirname(folder))
    os.symlink(os.path.join(os.path.dirname(os.environ["QUENCH"]), "Knight"), os.path.join(box, "Knight"))
    ENVIRONMENT["PATH"] = box + os.pathsep + os.environ["PATH"]
    os.chdir(folder)


with tempfile.TemporaryDirectory() as box:
    copy(box)
    with open("README.md", encoding="utf-8") as file:
        commands = re.findall(r"^    ((?:sh|Knight) .*)$", file.read(), re.MULTILINE)
    assert len(commands) == README_COMMANDS, commands
    for command in commands:
        run(command.replace("/tmp/", box + "/"))
        print("ok:", command)
    for name in (f"{box}/fashion/fashion", "out/cls/fashion", "out/detect/squares", "out/mix/fashion", "out/tf/resnet18",
                 "out/paddle/resnet18") + (("out/pytorch/resnet18",) if TORCH else ()):
        assert os.path.getsize(f"{name}_quantize.onnx") > 0
    assert len(os.listdir("data/squares/label_imgs")) == len(os.listdir("data/squares/images"))
    output = run("Knight quant --run-config config/run_config_detect.json -r infer")
    assert re.search(r"^accuracy +1\.0000$", output, re.MULTILINE), output
    run("Knight quant -m model/fashion.onnx -if infer_auto_script -uds infer_auto.py -i 2 -s out/auto")
    os.chdir(ROOT)
