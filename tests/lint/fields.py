#!/usr/bin/env python3
"""fields.py [FOLDER]: no struct has more than 25 fields, those of structs and unions inside it counted too.

A struct that grows on usually means several things, or different ones in different phases. Two kinds may be larger: options
(named …_options: they are made from a table, one row each) and tables of kernels (…_kernels). fields.txt lists the structs
that are still too large; a name that is there without need is a fault too, so that the list can only shrink."""

import os
import re
import sys

MOST = 25
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.S | re.M)
STRUCT = re.compile(r"\b(?:struct|union)\s*(\w*)\s*\{")
FREE = re.compile(r"_(options|kernels)$")


def body_end(text, start):
    """The place behind the brace that closes the one before `start`."""
    depth = 1
    while depth and start < len(text):
        depth += (text[start] == "{") - (text[start] == "}")
        start += 1
    return start


def without(text, pattern):
    while re.search(pattern, text):
        text = re.sub(pattern, " ", text)
    return text


def count_fields(body):
    body = without(body, r"\([^()]*\)|\[[^\[\]]*\]|\b(?:enum)\s*\w*\s*\{[^{}]*\}")
    # The braces of inner structs end a declaration; what follows them is a name or nothing.
    body = re.sub(r"\b(?:struct|union)\s*\w*\s*\{", "", body).replace("}", "")
    return sum(part.count(",") + 1 for part in body.split(";") if part.strip())


def structs(text):
    """Names and numbers of fields of the outermost structs."""
    text, at = COMMENT.sub(" ", text), 0
    while match := STRUCT.search(text, at):
        at = body_end(text, match.end())
        behind = re.match(r"\s*(\w+)\s*[;\[=]", text[at:])
        yield match[1] or (behind[1] if behind else "(no name)"), count_fields(text[match.end() : at - 1])


def sources(root):
    for top in ("include", "src", "tool"):
        for folder, _, files in os.walk(os.path.join(root, top)):
            yield from (os.path.join(folder, f) for f in sorted(files) if f.endswith((".h", ".c")))


def read_list(root):
    path = os.path.join(root, "tests/lint/fields.txt")
    if not os.path.isfile(path):
        return set()
    with open(path, encoding="utf-8") as file:
        return {line.strip() for line in file if line.strip() and not line.startswith("#")}


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "../..")
    known, large, bad = read_list(root), set(), 0
    for path in sources(root):
        with open(path, encoding="utf-8") as file:
            found = [(name, n) for name, n in structs(file.read()) if n > MOST and not FREE.search(name)]
        large.update(name for name, _ in found)
        for name, n in found:
            if name not in known:
                print(f"{os.path.relpath(path, root)}: struct {name} has {n} fields, more than {MOST}")
                bad = 1
    for name in sorted(known - large):
        print(f"tests/lint/fields.txt: {name} is not too large any more: take it out")
        bad = 1
    return bad


sys.exit(main())
