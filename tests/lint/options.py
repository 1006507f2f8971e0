#!/usr/bin/env python3
"""options.py [FOLDER]: what the command calls an option stands in one table only: in the rows of include/quench/options or
in those of tool/, not in both. Every table is listed in QN_OPTION_TABLES and made in src/api/options.c."""

import glob
import os
import re
import sys


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def named(text):
    """Fields that a table gives the command's name, as pairs."""
    return {m[2]: m[1] for m in re.finditer(r"ROW\((?:\w+)(?:\([^)]*\))?, (\w+),(?:(?!ROW\().)*?\.name = \"([^\"]+)\"", text, re.S)}


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../..")
    folder = os.path.join(root, "include/quench/options")
    known = read(os.path.join(root, "include/quench/options.h"))
    made = read(os.path.join(root, "src/api/options.c"))
    tool = "".join(read(path) for path in glob.glob(os.path.join(root, "tool/*.c")))
    bad = 0
    for path in sorted(glob.glob(os.path.join(folder, "*.def"))):
        text, name = read(path), os.path.relpath(path, root)
        macro = re.search(r"#define (QN_\w+)\(ROW\)", text)[1]
        if f"TABLE({macro}, " not in known or f"#define ROWS {macro}\n" not in made:
            print(f"{name}: {macro} is not in QN_OPTION_TABLES, or not made in src/api/options.c")
            bad = 1
        for option, field in named(text).items():
            if re.search(rf'\.name = "{option}",(?:(?!\.name).)*\.field = "{field}"', tool, re.S):
                print(f"{name}: --{option} ({field}) stands in a table of tool/ too")
                bad = 1
    return bad


sys.exit(main())
