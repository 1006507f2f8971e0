#!/usr/bin/env python3
"""ranks.py MODEL: processes that mpirun starts collect the statistics of one, byte for byte; one that fails ends all
with its message; what killed ones have collected is not lost, however many go on."""

import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

QUENCH, MODEL = os.path.abspath(os.environ["QUENCH"]), os.path.abspath(sys.argv[1])
# Tests run as root in containers with fewer processors than ranks.
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none"}
COUNT = 37


def save(name, rows, repeats=1):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(rows) * repeats}, 1, 28, 28), }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    with open(name, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        f.write(b"".join(struct.pack("<784f", *row) for row in rows) * repeats)


def command(ranks, data, output):
    return ["mpirun", "-n", str(ranks), QUENCH, "calibrate", "-m", MODEL, "-d", data, "-o", output, "-cn", "1"]


def shared(ranks, data, output, **environment):
    return subprocess.run(command(ranks, data, output), capture_output=True, text=True, check=False, timeout=300,
                          env={**ENVIRONMENT, **environment})


def lines(run):
    """What our processes say; mpirun's own words come between lines of dashes."""
    return [line for line in run.stderr.splitlines() if line.startswith("quench: ")]


def same(a, b):
    with open(a, "rb") as x, open(b, "rb") as y:
        return x.read() == y.read()


def leftovers(output):
    """Checkpoints; a process that is killed while it writes one leaves a file of its own beside it."""
    return sorted(name for name in os.listdir(".") if name.startswith(output + ".part") and ".tmp-" not in name)


def any_number_of_ranks_gives_the_same_file():
    for ranks in 1, 2, 3, COUNT + 3 if os.environ.get("QUENCH_TEST_MANY_RANKS") else 5:
        run = shared(ranks, "all.npy", f"s{ranks}")
        assert run.returncode == 0, run.stderr
        assert same("alone", f"s{ranks}"), f"{ranks} ranks"
        assert lines(run) == ([f"quench: note: MPI: {ranks} ranks"] if ranks > 1 else []), run.stderr
        assert run.stdout.count("samples ") >= 1 and run.stdout.split().count("converges") <= 1, run.stdout
        assert f"samples       {COUNT}" in run.stdout, run.stdout
        assert not leftovers(f"s{ranks}")


def more_ranks_than_samples():
    run = shared(3, "two.npy", "few")
    assert run.returncode == 0 and same("two", "few"), run.stderr


def one_that_fails_ends_all():
    run = shared(3, "nan.npy", "bad")
    assert run.returncode != 0 and not os.path.exists("bad"), run.stdout
    said = [line for line in lines(run) if "MPI:" not in line]
    assert len(said) == 1 and "nan.npy" in said[0] and "has NaN or infinite elements" in said[0], run.stderr


def without_the_plugin():
    run = shared(2, "all.npy", "none", QUENCH_PLUGINS="")
    assert run.returncode != 0 and not os.path.exists("none"), run.stdout
    said = lines(run)
    assert len(said) == 1 and "libquench-mpi.so" in said[0], run.stderr


def processes_of(name):
    found = subprocess.run(["pgrep", "-f", f"quench calibrate .* -o {name} "], capture_output=True, text=True,
                           check=False)
    return [int(pid) for pid in found.stdout.split()
            if os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "quench"]


def start_and_kill(ranks, output):
    """Kills one rank a second after all have begun; mpirun then asks the others to end, which write checkpoints."""
    run = subprocess.Popen(command(ranks, "many.npy", output), env=ENVIRONMENT, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while len(processes_of(output)) < ranks and run.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(1)
    assert run.poll() is None, "it ended before it could be killed"
    os.kill(processes_of(output)[-1], signal.SIGKILL)
    assert run.wait(120) != 0
    assert leftovers(output), "no rank has written a checkpoint"


def what_killed_ranks_collected_is_kept():
    start_and_kill(3, "killed")
    run = shared(2, "many.npy", "killed")
    assert run.returncode == 0, run.stderr
    assert any("going on after" in line for line in lines(run)), run.stderr
    assert same("many", "killed") and not leftovers("killed")


def alone(data, output):
    subprocess.run([QUENCH, "calibrate", "-m", MODEL, "-d", data, "-o", output], check=True, capture_output=True)


def main():
    if not shutil.which("mpirun") or not os.path.exists(os.path.join(os.path.dirname(QUENCH), "libquench-mpi.so")):
        print("skipped: needs Open MPI, and libquench-mpi.so beside the command")
        return 77
    started = subprocess.run(["mpirun", "-n", "2", "true"], capture_output=True, text=True, check=False, timeout=60,
                             env=ENVIRONMENT)
    if started.returncode:
        print(f"skipped: mpirun cannot start processes here: {started.stderr.strip()[:500]}")
        return 77
    random.seed(26)
    rows = [[random.random() for _ in range(784)] for _ in range(COUNT)]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        save("all.npy", rows)
        save("two.npy", rows[:2])
        save("many.npy", rows, 1500)
        rows[COUNT - 5][3] = float("nan")
        save("nan.npy", rows)
        for data in "all", "two", "many":
            alone(f"{data}.npy", "alone" if data == "all" else data)
        any_number_of_ranks_gives_the_same_file()
        more_ranks_than_samples()
        one_that_fails_ends_all()
        without_the_plugin()
        what_killed_ranks_collected_is_kept()
    return 0


if __name__ == "__main__":
    sys.exit(main())
