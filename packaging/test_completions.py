#!/usr/bin/env python3
"""Lets bash, zsh and fish complete a call of keyhaul, each in a terminal as for a user, and runs the result.

    packaging/test_completions.py SHARE [COMMAND…]

SHARE is the folder that the completions were installed in, as the shells see it; COMMAND is put before the shells, such as
`packaging/in_root ROOT`. `keyhaul versi⇥--js⇥⏎` answers as `keyhaul version --json` does only where both words were completed.
"""

import os
import pty
import select
import signal
import sys
import time

SECONDS = 240
ZSH = "PS1=; fpath=({0}/zsh/vendor-completions {0}/zsh/site-functions $fpath); autoload -Uz compinit; compinit -u -D"
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], ". {0}/bash-completion/completions/keyhaul"),
    "zsh": (["zsh", "-f", "-i"], ZSH),
    "fish": (["fish", "--no-config", "-i"], "source {0}/fish/vendor_completions.d/keyhaul.fish"),
}


def read_until(terminal, word, heard, end):
    while word not in heard:
        if time.monotonic() > end:
            return heard, False
        if select.select([terminal], [], [], 1)[0]:
            try:
                heard += os.read(terminal, 65536)
            except OSError:
                return heard, word in heard
    return heard, True


def completes(command, shell, share):
    arguments, setting = SHELLS[shell]
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm"
        os.execvp((command + arguments)[0], command + arguments)
    end = time.monotonic() + SECONDS
    try:
        os.write(terminal, f"{setting.format(share)}\necho READY-$(math 6 x 7 2>/dev/null || echo 42)\n".encode()
                 if shell != "fish" else f"{setting.format(share)}\necho READY-(math 6 x 7)\n".encode())
        heard, is_ready = read_until(terminal, b"READY-42", b"", end)
        if is_ready:
            os.write(terminal, b"keyhaul versi\t")
            heard, _ = read_until(terminal, b"on", b"", time.monotonic() + 20)
            os.write(terminal, b"--js\t\n")
            heard, is_right = read_until(terminal, b"version/1", heard, end)
            if is_right:
                return True
        sys.stderr.write(f"{shell} showed {heard!r}\n")
        return False
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def main():
    share, command = sys.argv[1], sys.argv[2:]
    failed = [shell for shell in SHELLS if not completes(command, shell, share)]
    if failed:
        sys.exit(f"error: {', '.join(failed)} did not complete the call")
    print("bash, zsh and fish complete a verb and a flag")


if __name__ == "__main__":
    main()
