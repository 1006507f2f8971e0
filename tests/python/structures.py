"""structures.py: every structure of python/ has the size of the C one that its docstring names, and fields of the same
names at the same places, as this machine's compiler lays them out."""

import ctypes
import os
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "python"))
from quench import library  # noqa: E402


def structures_of(module):
    return [kind for kind in vars(module).values()
            if isinstance(kind, type) and issubclass(kind, ctypes.Structure) and kind is not ctypes.Structure]


def c_name(kind):
    named = re.match(r"qn_\w+", kind.__doc__ or "")
    return named and named[0]


def in_c(kinds):
    """Lines "structure field offset size", the whole as the field ".", of what the compiler says."""
    rows = []
    for name, kind in kinds:
        rows.append(f'printf("{name} . 0 %zu\\n", sizeof({name}));')
        rows += [f'printf("{name} {field} %zu %zu\\n", offsetof({name}, {field}), sizeof((({name} *)0)->{field}));'
                 for field, _ in kind._fields_]
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "a.c"), os.path.join(folder, "a")
        with open(source, "w", encoding="utf-8") as file:
            file.write("#include <stddef.h>\n#include <stdio.h>\n#include <quench.h>\nint main(void)\n{\n" +
                       "\n".join(rows) + "\n}\n")
        subprocess.run([*shlex.split(os.environ.get("CC", "cc")), "-std=c17", "-I", os.path.join(ROOT, "include"), source,
                        "-o", program], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()


def in_python(kinds):
    lines = []
    for name, kind in kinds:
        lines.append(f"{name} . 0 {ctypes.sizeof(kind)}")
        for field, _ in kind._fields_:
            place = getattr(kind, field)
            lines.append(f"{name} {field} {place.offset} {place.size}")
    return lines


def differences(kinds):
    return [f"C has {a}, Python {b}" for a, b in zip(in_c(kinds), in_python(kinds)) if a != b]


class Wrong(ctypes.Structure):
    """qn_tensor without room for all dimensions: what the test has to find."""
    _fields_ = [("dtype", ctypes.c_int), ("rank", ctypes.c_int32), ("dims", ctypes.c_int64 * 2), ("data", ctypes.c_void_p)]


def main():
    found = structures_of(library)
    wrong = [f"{kind.__name__} names no structure of C" for kind in found if not c_name(kind)]
    kinds = [(c_name(kind), kind) for kind in found if c_name(kind)]
    wrong += differences(kinds)
    if len(differences([("qn_tensor", Wrong)])) != 3:
        wrong.append("a structure that is too small is not found")
    print("\n".join(wrong) or f"{len(kinds)} structures are those of C")
    return 1 if wrong or not kinds else 0


if __name__ == "__main__":
    sys.exit(main())
