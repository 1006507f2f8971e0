#!/usr/bin/env python3
"""transcript.py FILE: repeats a session with the command and compares what comes out.

    # a comment
    $ quench inspect missing.onnx         a command, run by sh in a scratch folder that the file's
    $   | head -1                         commands share; deeper indented lines continue it
    > standard output                     "*" matches any part of a line
    > ...                                 any number of lines
    ! standard error
    = 1                                   the exit code; 0 when not given

No line has more than 200 characters, and none expects just anything ("> *"): what comes out is said.
The commands find quench and the helpers of tests/cli in their PATH, the repository in $ROOT."""

import os
import re
import subprocess
import sys
import tempfile

LONGEST = 200
HERE = os.path.dirname(os.path.abspath(__file__))


class Step:
    def __init__(self, command):
        self.command, self.code = command, 0
        self.streams = {">": [], "!": []}


def refused(line):
    """Why the line may not stand in a transcript, or None."""
    if len(line) > LONGEST:
        return f"a line has at most {LONGEST} characters: commands go on behind \"$   \", and * stands for a part"
    if line[0] in ">!" and not line[1:].strip(" *") and "*" in line:
        return "matches anything: say what comes out"
    return None


def read(path):
    steps = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip("\n")
            if not line or line.startswith("#"):
                continue
            if refused(line):
                sys.exit(f"{path}:{number}: {refused(line)}")
            if line.startswith("$   "):
                steps[-1].command += "\n" + line[4:]
            elif line.startswith("$ "):
                steps.append(Step(line[2:]))
            elif line[0] in ">!":
                steps[-1].streams[line[0]].append(line[2:])
            elif line.startswith("= "):
                steps[-1].code = int(line[2:])
            else:
                sys.exit(f"{path}:{number}: neither $ > ! = nor a comment")
    return steps


def pattern(lines):
    """A regular expression for the expected lines."""
    parts = []
    for line in lines:
        parts.append("(?:.*\n)*" if line == "..." else
                     ".*".join(map(re.escape, line.split("*"))) + "\n")
    return re.compile("".join(parts))


def run(step, folder):
    """What is wrong with the step, or None."""
    environment = dict(os.environ, ROOT=os.path.abspath(os.path.join(HERE, "..", "..")), LC_ALL="C")
    environment["PATH"] = os.pathsep.join(
        [os.path.dirname(os.environ["QUENCH"]), HERE, os.environ["PATH"]])
    done = subprocess.run(["sh", "-c", step.command], cwd=folder, env=environment, timeout=300,
                          stdin=subprocess.DEVNULL, capture_output=True)
    wrong = []
    if done.returncode != step.code:
        wrong.append(f"exit code {done.returncode}, expected {step.code}")
    for name, bytes_, key in (("stdout", done.stdout, ">"), ("stderr", done.stderr, "!")):
        text = bytes_.decode("utf-8", "replace")
        if not pattern(step.streams[key]).fullmatch(text):
            wrong.append(f"{name} is\n{text}expected\n" + "".join(l + "\n" for l in step.streams[key]))
    return "\n".join(wrong) or None


def main():
    steps, failed = read(sys.argv[1]), 0
    with tempfile.TemporaryDirectory() as folder:
        for step in steps:
            wrong = run(step, folder)
            if wrong:
                failed += 1
                print(f"$ {step.command}\n{wrong}")
    print(f"{len(steps) - failed} of {len(steps)} commands as expected")
    return 1 if failed or not steps else 0


if __name__ == "__main__":
    sys.exit(main())
