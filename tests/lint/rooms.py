#!/usr/bin/env python3
"""rooms.py [ROOT]: fails where a file includes a header of a room it may not know (rooms.txt), or where the map
(docs/architecture.md) says otherwise than that table."""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
MAP_ROW = re.compile(r"\| `(\w+)` \|.*\| ([a-z ]+) \|$")
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]')
OUTSIDE = ("tool", "examples", "python")


def read_table():
    with open(os.path.join(HERE, "rooms.txt"), encoding="utf-8") as table:
        rows = [line.split() for line in table if line.strip() and not line.startswith("#")]
    return {row[0]: set(row[1:]) for row in rows}


def source_files(root, folder):
    for path, _, names in os.walk(os.path.join(root, folder)):
        for name in sorted(names):
            if name.endswith((".c", ".h", ".cu", ".cuh", ".def", ".inc")):
                yield os.path.relpath(os.path.join(path, name), root)


def room_of(path):
    """The room a path inside the repository belongs to; None for the public header and libc."""
    parts = path.split("/")
    if parts[0] == "src":
        return parts[1] if len(parts) > 2 else "src"
    return parts[0] if parts[0] in OUTSIDE else None


def resolve(root, path, header):
    """The included file as a path inside the repository, or None when it is not ours."""
    for base in (os.path.dirname(path), "src", "include"):
        found = os.path.normpath(os.path.join(base, header))
        if os.path.isfile(os.path.join(root, found)):
            return found
    return None


def check_file(root, path, table):
    room = room_of(path)
    if room not in table:
        yield f"{path}:1: room '{room}' has no row in tests/lint/rooms.txt"
        return
    with open(os.path.join(root, path), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            match = INCLUDE.match(line)
            target = match and resolve(root, path, match.group(1))
            known = target and room_of(target)
            if known and known != room and known not in table[room]:
                yield f"{path}:{number}: {room} may not know {known} ({match.group(1)})"


def check_map(root, table):
    path = os.path.join(root, "docs", "architecture.md")
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            match = MAP_ROW.match(line)
            said = match and set(match.group(2).split()) - {"libc"}
            if match and match.group(1) in table and said != table[match.group(1)] and match.group(2) != "all of them":
                yield f"docs/architecture.md:{number}: room '{match.group(1)}' knows others in tests/lint/rooms.txt"


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "..", "..")
    table = read_table()
    faults = [fault for folder in ("src",) + OUTSIDE for path in source_files(root, folder)
              for fault in check_file(root, path, table)]
    faults += check_map(root, table)
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
