#!/usr/bin/env python3
"""terminal.py MODEL: a progress line is shown where stderr is a terminal, and only there; Ctrl-C ends the
command with exit code 1 and one line."""

import os
import pty
import signal
import subprocess
import sys

COMMAND = [os.environ["QUENCH"], "bench", sys.argv[1], "--seconds", "1"]


def at_terminal(options, interrupt=False):
    """What a terminal on stderr gets, and the exit code; Ctrl-C as soon as there is progress."""
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
        if interrupt and b"%" in seen:
            process.send_signal(signal.SIGINT)
            interrupt = False
    return seen.decode(), process.wait()


def main():
    shown, code = at_terminal([])
    assert code == 0
    assert "%" in shown and "/s" in shown and "s left" in shown, repr(shown)
    assert shown.endswith("\r\x1b[K"), repr(shown)
    assert at_terminal(["--quiet"]) == ("", 0)
    piped = subprocess.run(COMMAND, capture_output=True, check=True)
    assert piped.stderr == b"", piped.stderr
    shown, code = at_terminal(["--seconds", "20"], interrupt=True)
    assert code == 1 and shown.endswith("\r\x1b[Kquench: cancelled\r\n"), (code, shown)


if __name__ == "__main__":
    main()
