"""docs/knight.md: what the Knight tool's manual has stands there, and every row names a test that exists and has the
words that it is told to have."""
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLAGS = ("-h -m -f -if -s -d -gsj -lsj -b -i -bs -ib -du -gt -mc -l -qm -per -r -ll -lt -qid -od --mean --std -w -snn "
         "-enn -c2chw -is -uds -cn -cd -uis -amr -ams -rc -on").split()
MODES = "quant infer convert compare".split()
KEYS = ("data_dir label_dir is_yolo color_space augment mean std calculate_acc draw_box max_det anchors nc conf_thres "
        "iou_thres names").split()
EXECUTOR = ("iteration batch_size dataset input_nodes output_name_to_node_name() shape_dicts early_stop_flag "
            "forward").split()
COMPARE = ("-qd -sd -on -sh -sl -sn -si --save-dir --no-mre --no-cos --rmse --maxdiff --bias --sort --show-plot --op-type "
           "--index-range").split()
TORCH = "model inputs dynamic_axes_inputs dynamic_axes_outputs concrete_args".split()
WANTED = {"Flags": FLAGS, "Flags of compare": COMPARE, "Run modes and files": MODES, "Run configuration": KEYS, "Executor": EXECUTOR,
          "Models of PyTorch": TORCH,
          "Rules of mixed widths": [str(i) for i in range(1, 9)], "Chips": []}
SOURCES = ("tests/cli/{}.txt", "tests/cli/{}.py", "tests/unit/{}.c", "tests/accuracy/{}.py")


def sections(text):
    """Heading -> rows, each a list of cells; without the head of the table."""
    found = {}
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        heading, _, rest = part.partition("\n")
        rows = [line.strip().strip("|").split("|") for line in rest.splitlines() if line.startswith("|")]
        found[heading] = [[cell.strip() for cell in row] for row in rows[2:]]
    return found


def known_tests(build):
    """Listed from another folder: ctest empties the log of the one it is started for, which may be running."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "CTestTestfile.cmake"), "w", encoding="utf-8") as file:
            file.write(f'subdirs("{os.path.abspath(build)}")\n')
        listing = subprocess.run(["ctest", "-N", "--test-dir", folder], check=True, capture_output=True,
                                 text=True).stdout
    return set(re.findall(r"Test +#\d+: (\S+)", listing))


def source_of(test):
    names = (test.rpartition(".")[2], test.partition(".")[2], test.split(".")[1], test)
    for form in SOURCES:
        for name in names:
            path = os.path.join(ROOT, form.format(name))
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    return file.read()
    return ""


def check_proof(cell, tests):
    proofs = re.findall(r"`([^`]+)`", cell)
    if not proofs:
        return ["names no test"]
    wrong = []
    for proof in proofs:
        test, _, words = proof.partition(": ")
        if test not in tests:
            wrong.append(f"there is no test {test}")
        elif words and words not in source_of(test):
            wrong.append(f"{test} has no '{words}'")
    return wrong


def main():
    with open(os.path.join(ROOT, "docs", "knight.md"), encoding="utf-8") as file:
        found = sections(file.read())
    tests, wrong = known_tests(os.path.dirname(os.environ["QUENCH"])), []
    for heading, names in WANTED.items():
        rows = found.get(heading, [])
        if not rows:
            wrong.append(f"{heading}: has no rows")
        has = {word.strip("` ") for row in rows for word in row[0].split(",")}
        wrong += [f"{heading}: {name} has no row" for name in names if name not in has]
        wrong += [f"{heading}: {row[0]}: {what}" for row in rows for what in check_proof(row[-1], tests)]
    print("\n".join(wrong) or f"{sum(len(found[heading]) for heading in WANTED)} rows, each with its test")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
