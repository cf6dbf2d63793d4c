#!/usr/bin/env python3
"""Runs programs, and says what each of them took by itself.

A process begins with the peak of memory of the one that starts it, which `ru_maxrss` keeps over exec: who holds 70 MB and
starts a program of 20 reads 70. So a small process that is started before anything else starts all the others.
"""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass


@dataclass
class Took:
    """Seconds on the clock and of the processors, the most bytes of memory at once, and the exit code; none where it was killed as too slow."""

    code: object
    seconds: float
    processor: float
    memory: int


class Launcher:
    def __enter__(self):
        self.server = subprocess.Popen([sys.executable, "-I", "-S", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def __exit__(self, *_):
        self.server.stdin.close()
        self.server.stdout.close()
        self.server.wait()

    def run(self, words, folder=None, most_seconds=0):
        """Runs a command to its end, without input and output.

        - most_seconds: It is killed after so many; 0 never.
        """
        order = {"words": [os.fspath(word) for word in words], "folder": folder and os.fspath(folder), "most_seconds": most_seconds}
        self.server.stdin.write(json.dumps(order).encode() + b"\n")
        self.server.stdin.flush()
        answer = self.server.stdout.readline()
        if not answer:
            raise RuntimeError("the process that starts the others ended")
        return Took(**json.loads(answer))


def carry_out(words, folder, most_seconds):
    started, late = time.perf_counter(), []
    process = subprocess.Popen(
        words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end(*_):
        late.append(True)
        process.kill()

    signal.signal(signal.SIGALRM, end)
    signal.alarm(most_seconds)
    _, status, usage = os.wait4(process.pid, 0)
    signal.alarm(0)
    seconds = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    # Bytes on Apple's systems, kilobytes elsewhere.
    unit = 1 if sys.platform == "darwin" else 1 << 10
    return {"code": None if late else process.returncode, "seconds": seconds, "processor": usage.ru_utime + usage.ru_stime,
            "memory": usage.ru_maxrss * unit}


if __name__ == "__main__":
    for line in sys.stdin.buffer:
        print(json.dumps(carry_out(**json.loads(line))), flush=True)
