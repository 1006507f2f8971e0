#!/usr/bin/env python3
"""terminal.py MODEL: a progress line is shown where stderr is a terminal, and only there; Ctrl-C ends the
command with exit code 1 and one line."""

import os
import pty
import signal
import subprocess
import sys
import time

COMMAND = [os.environ["QUENCH"], "bench", sys.argv[1], "--seconds", "1"]


def at_terminal(options):
    """What a terminal on stderr gets."""
    master, slave = pty.openpty()
    process = subprocess.Popen(COMMAND + options, stdout=subprocess.DEVNULL, stderr=slave)
    os.close(slave)
    seen = b""
    while True:
        try:
            piece = os.read(master, 4096)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    assert process.wait() == 0
    return seen.decode()


def main():
    shown = at_terminal([])
    assert "%" in shown and "/s" in shown and "s left" in shown, repr(shown)
    assert shown.endswith("\r\x1b[K"), repr(shown)
    assert at_terminal(["--quiet"]) == ""
    piped = subprocess.run(COMMAND, capture_output=True, check=True)
    assert piped.stderr == b"", piped.stderr
    process = subprocess.Popen(COMMAND[:-1] + ["60"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.7)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (1, b"", b"quench: cancelled\n"), (out, err)


if __name__ == "__main__":
    main()
