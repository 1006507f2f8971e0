"""commits.py: bench/commits.py finds one program equal to itself, and names what another one makes otherwise."""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(HERE, "..", "..", "bench", "commits.py")
QUENCH = os.environ["QUENCH"]
# Quantizes by another method than it is told.
OTHER = '''#!/bin/sh
case " $* " in *" quant "*) exec "$QUENCH" "$@" -qm min_max ;; *) exec "$QUENCH" "$@" ;; esac
'''


def compare(other, *options):
    done = subprocess.run([sys.executable, SCRIPT, QUENCH, other, "--models", "fashion", *options], text=True,
                          capture_output=True)
    print(done.stdout, done.stderr)
    return done.returncode, done.stdout


def main():
    with tempfile.TemporaryDirectory() as folder:
        other = os.path.join(folder, "quench")
        with open(other, "w", encoding="utf-8") as file:
            file.write(OTHER)
        os.chmod(other, 0o755)
        # A program may be slower than itself on a busy machine: only that times are compared is tested.
        _, timed = compare(QUENCH, "--only", "speed", "--rounds", "2", "--most-rounds", "2", "--seconds", "0.02")
        code, same = compare(QUENCH, "--only", "files")
        other_code, different = compare(other, "--only", "files")
    good = code == 0 and same.count(": the same") == 3
    good &= other_code == 1 and "DIFFERENCES" in different and "constant '" in different
    good &= "fashion, float" in timed and "fashion, int8" in timed
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
