"""table.py: docs/import.md has a row for every operator that `quench ops --framework` lists, and every row names a test
that exists and has the words, or the golden case, that it is told to have."""

import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
from knight_table import ROOT, check_proof, known_tests  # noqa: E402

QUENCH = os.environ["QUENCH"]
# A section: what people call the framework, and its word.
SECTIONS = {"Caffe": "caffe", "TensorFlow": "tensorflow", "TensorFlow Lite": "tflite", "Keras": "keras", "PaddlePaddle": "paddle",
            "PyTorch": "pytorch"}
GOLDEN = re.compile(r"^import\.golden\.(\w+): (.+)$")


def operators(framework):
    listing = subprocess.run([QUENCH, "ops", "--framework", framework, "--json"], capture_output=True, text=True, check=False)
    return {row["operator"] for row in json.loads(listing.stdout).get("operators", [])} if listing.returncode == 0 else set()


def sections(text):
    """Heading -> rows of all its tables, without their heads."""
    found = {}
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        heading, _, rest = part.partition("\n")
        rows, head = [], True
        for line in rest.splitlines():
            if not line.startswith("|"):
                head = True
            elif set(line) <= set("|- "):
                head = False
            elif not head:
                rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
        found[heading.strip()] = rows
    return found


def wrong_proofs(cell, tests):
    """A golden case is a file; everything else is looked up as docs/knight.md's proofs are."""
    wrong, others = [], []
    for proof in re.findall(r"`([^`]+)`", cell):
        found = GOLDEN.match(proof)
        if not found:
            others.append(f"`{proof}`")
            continue
        for case in found[2].split():
            if not os.path.exists(os.path.join(HERE, found[1], "cases", case + ".npz")):
                wrong.append(f"there is no case {case}")
    return wrong + (check_proof(" ".join(others), tests) if others or not wrong and "`" not in cell else [])


def main():
    with open(os.path.join(ROOT, "docs", "import.md"), encoding="utf-8") as file:
        found = sections(file.read())
    tests, wrong, has = known_tests(os.path.dirname(QUENCH)), [], {}
    for heading, rows in found.items():
        has.setdefault(SECTIONS.get(heading), set()).update(
            word.strip("` ") for row in rows for word in row[0].split(","))
        wrong += [f"{heading}: {row[0]}: {what}" for row in rows for what in wrong_proofs(row[-1], tests)]
    for framework in set(SECTIONS.values()):
        wrong += [f"{framework}: {name} has no row" for name in sorted(operators(framework) - has.get(framework, set()))]
    print("\n".join(wrong) or f"{sum(len(rows) for rows in found.values())} rows, each with its test")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
