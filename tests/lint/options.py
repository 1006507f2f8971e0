#!/usr/bin/env python3
"""options.py [FOLDER]: every option stands in one table. The rows of include/quench/options are listed in QN_OPTION_TABLES,
made in src/api/options.c and, where the command has them, taken into a group by tool/tables.c; rows of tool/ are for what
only the command has, and repeat neither their fields nor their names."""

import glob
import os
import re
import sys

# Rows of tool/ over a field of the library, and why they are not the table's.
TYPED_OTHERWISE = {"last": "--index-range is `first` and `last` together", "configs": "--run-config names their file"}
# Words that an option of the command shares with one of a table, which another command has.
SAME_WORD = {"output": "the file to write; of eval the tensor", "float": "the original; of quant the nodes",
             "iteration": "of calibrate: no option of the library", "batch-size": "of calibrate: no option of the library",
             "framework": "of ops: which table is listed"}
ROW = re.compile(r"\bROW\(\w+(?:\([^)]*\))?, (\w+),((?:(?!\bROW\().)*)", re.S)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../..")
    known, made = read(os.path.join(root, "include/quench/options.h")), read(os.path.join(root, "src/api/options.c"))
    groups = read(os.path.join(root, "tool/tables.c"))
    fields, names, bad = set(), {}, 0

    def fail(where, what):
        nonlocal bad
        print(f"{where}: {what}")
        bad = 1

    for path in sorted(glob.glob(os.path.join(root, "include/quench/options/*.def"))):
        text, where = re.sub(r"\\\n", " ", read(path)), os.path.relpath(path, root)
        macro = re.search(r"#define (QN_\w+)\(ROW\)", text)[1]
        rows = ROW.findall(text)
        fields |= {field for field, _ in rows}
        called = [re.search(r'\.name = "([^"]+)"', columns)[1] for _, columns in rows if ".name = " in columns]
        for name in called:
            names.setdefault(name, []).append(where)
        if os.path.basename(path) == "shared.def":
            continue
        if f"TABLE({macro}, " not in known or f"#define ROWS {macro}\n" not in made:
            fail(where, f"{macro} is not in QN_OPTION_TABLES, or not made in src/api/options.c")
        if called and f", {macro}," not in groups:
            fail(where, f"has names of the command, but tool/tables.c has no group of {macro}")
    for path in sorted(glob.glob(os.path.join(root, "tool/*.c"))):
        for row in re.findall(r"\{\.name = .*?\}", read(path), re.S):
            name, field = re.search(r'\.name = "([^"]+)"', row), re.search(r'\.field = "([^"]+)"', row)
            if field and field[1] in fields and field[1] not in TYPED_OTHERWISE:
                fail(os.path.relpath(path, root), f"`{field[1]}` is a row of include/quench/options: take it from there")
            if name and name[1] in names and name[1] not in SAME_WORD:
                fail(os.path.relpath(path, root), f"--{name[1]} stands in {names[name[1]][0]} too")
    shorts = {word for path in glob.glob(os.path.join(root, "include/quench/options/*.def")) + glob.glob(os.path.join(root, "tool/*.c"))
              for words in re.findall(r'\.shorts = "([^"]+)"', read(path)) for word in words.split()}
    flag = re.compile(r"""(?<![\w)])(?:--[a-z]|-(?:%s)(?![\w-]))""" % "|".join(sorted(shorts, key=len, reverse=True)))
    for path in sorted(glob.glob(os.path.join(root, "src/**/*.[ch]"), recursive=True)):
        code = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), read(path), flags=re.S)
        for number, line in enumerate(code.split("\n"), 1):
            for text in re.findall(r'"((?:[^"\\]|\\.)*)"', line) if "#include" not in line else []:
                if flag.search(text):
                    fail(f"{os.path.relpath(path, root)}:{number}", f"names an option of the command, not `field`: {text}")
    return bad


sys.exit(main())
