#!/usr/bin/env python3
"""types.py [FOLDER]: every type name is declared once in all headers and sources of the tree.

Two private headers that use one name for two types compile as long as nobody includes both, and mislead everybody who
looks for the type. Types without a prefix are private to a source or to one instruction set's headers, and may repeat."""

import os
import re
import sys

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.S | re.M)
BODY = re.compile(r"\b(?:struct|union|enum)\s+(\w+)\s*\{")
# The name behind a body that has none in front, and that of a type that is no struct.
ANONYMOUS = re.compile(r"\btypedef\s+(?:struct|union|enum)\s*\{[^{}]*\}\s*(\w+)\s*;")
PLAIN = re.compile(r"^typedef\s+(?!struct\b|union\b|enum\b)[^;{}()]*?\b(\w+)\s*;", re.M)
FUNCTION = re.compile(r"^typedef\s+[\w\s*]+?\*?\b(\w+)\s*\([^;{}]*\)\s*;|^typedef\s+[^;{}(]*\(\s*\*\s*(\w+)\s*\)\s*\(", re.M)


def declared(text):
    text = COMMENT.sub(" ", text)
    names = [m[1] for pattern in (BODY, ANONYMOUS, PLAIN) for m in pattern.finditer(text)]
    names += [m[1] or m[2] for m in FUNCTION.finditer(text)]
    return {name for name in names if name.startswith(("qn_", "cli_"))}


def sources(root):
    for top in ("include", "src", "tool"):
        for folder, _, files in os.walk(os.path.join(root, top)):
            yield from (os.path.join(folder, f) for f in sorted(files) if f.endswith((".h", ".c")))


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../..")
    places = {}
    for path in sources(root):
        with open(path, encoding="utf-8") as file:
            for name in declared(file.read()):
                places.setdefault(name, []).append(os.path.relpath(path, root))
    bad = 0
    for name, where in sorted(places.items()):
        if len(where) > 1:
            print(f"type {name} is declared more than once: {', '.join(where)}")
            bad = 1
    return bad


sys.exit(main())
