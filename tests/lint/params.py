"""params.py [FILE...]: fails where a function of ours has more than six parameters."""

import re
import subprocess
import sys

MOST = 6
FOREIGN = "src/ort/"  # its typedefs are the signatures of somebody else's functions
# name(...) or (*name)(...) before a body or a semicolon, with at most one level of parentheses inside
FUNCTION = re.compile(r"(\w+|\(\*\w+\))\(((?:[^()]|\([^()]*\))*)\)\s*[{;]")
# a type, then a name: what tells a declaration from a call
PARAMETER = re.compile(r"\s*(const |struct )*\w+[\s*]+(const )?\**(\(\*)?\w+")
HIDDEN = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def pieces(text):
    """What stands between the commas outside of parentheses."""
    depth, parts = 0, [""]
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def main():
    files = sys.argv[1:] or subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.c", "*.h"],
        check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    wrong = 0
    for path in files:
        with open(path, encoding="utf-8") as file:
            text = HIDDEN.sub(lambda hidden: "\n" * hidden[0].count("\n"), file.read())
        for found in FUNCTION.finditer(text):
            start = text.rfind("\n", 0, found.start()) + 1
            if path.startswith(FOREIGN) and text.startswith("typedef", start):
                continue
            parts = pieces(found[2])
            if len(parts) > MOST and all(PARAMETER.match(part) for part in parts):
                line = text.count("\n", 0, found.start()) + 1
                print(f"{path}:{line}: {found[1]} has {len(parts)} parameters, {MOST} are the most")
                wrong += 1
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
