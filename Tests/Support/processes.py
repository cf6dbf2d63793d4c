#!/usr/bin/env python3
"""Run programs, and measure the resources that each uses.

`ru_maxrss` includes the peak memory that the parent had before exec. If a process of 70 MB starts a program of 20 MB,
the value is 70 MB. Therefore a small process, which is started first, starts all other programs.
"""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass


@dataclass
class ProcessCost:
    """The cost of one process: elapsed time and CPU time in seconds, and peak memory in bytes.

    `code` is the exit code, or None after a timeout.
    """

    code: object
    seconds: float
    cpu_seconds: float
    memory: int


class Launcher:
    """A context manager for the small process that starts programs."""

    def __enter__(self):
        self.server = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        return self

    def __exit__(self, *_):
        self.server.stdin.close()
        self.server.stdout.close()
        self.server.wait()

    def run(self, command, folder=None, timeout_seconds=0):
        """Run a command without input and output.

        After `timeout_seconds`, the command is killed; 0 means no limit.
        """
        request = {
            "command": [os.fspath(argument) for argument in command],
            "folder": folder and os.fspath(folder),
            "timeout_seconds": timeout_seconds,
        }
        self.server.stdin.write(json.dumps(request).encode() + b"\n")
        self.server.stdin.flush()
        response = self.server.stdout.readline()
        if not response:
            raise RuntimeError("the launcher process ended")
        return ProcessCost(**json.loads(response))


def run_process(command, folder, timeout_seconds):
    """Run a command, and return its cost as a dictionary."""
    started, timeouts = time.perf_counter(), []
    process = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(*_):
        timeouts.append(True)
        process.kill()

    signal.signal(signal.SIGALRM, kill)
    signal.alarm(timeout_seconds)
    _, status, usage = os.wait4(process.pid, 0)
    signal.alarm(0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    # Bytes on Apple's systems, kilobytes elsewhere.
    unit = 1 if sys.platform == "darwin" else 1 << 10
    return {
        "code": None if timeouts else process.returncode,
        "seconds": seconds,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "memory": usage.ru_maxrss * unit,
    }


if __name__ == "__main__":
    for line in sys.stdin.buffer:
        print(json.dumps(run_process(**json.loads(line))), flush=True)
