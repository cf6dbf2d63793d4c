#!/usr/bin/env python3
"""Complete a call of keyhaul in bash, zsh and fish, each in a terminal, and run the result.

    packaging/test_completions.py SHARE [COMMAND…]

SHARE is the folder with the installed completions, as the shells see it. COMMAND is put before the shells, such as
`packaging/in_root ROOT`. The completed line `keyhaul versi⇥--js⇥⏎` prints the JSON of `keyhaul version --json` only if
both words were completed.
"""

import os
import pty
import select
import signal
import sys
import time

TIMEOUT = 240
ZSH = "PS1=; fpath=({0}/zsh/vendor-completions {0}/zsh/site-functions $fpath); autoload -Uz compinit; compinit -u -D"
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], ". {0}/bash-completion/completions/keyhaul"),
    "zsh": (["zsh", "-f", "-i"], ZSH),
    "fish": (["fish", "--no-config", "-i"], "source {0}/fish/vendor_completions.d/keyhaul.fish"),
}


def read_until(terminal, text, output, deadline):
    """Read from the terminal until the output contains the text. Return the output and whether it contains the text."""
    while text not in output:
        if time.monotonic() > deadline:
            return output, False
        if select.select([terminal], [], [], 1)[0]:
            try:
                output += os.read(terminal, 65536)
            except OSError:
                return output, text in output
    return output, True


def is_completed(prefix, shell, share):
    """Return whether the shell completes the command and the flag."""
    arguments, setup = SHELLS[shell]
    child, terminal = pty.fork()
    if child == 0:
        os.environ["TERM"] = "xterm"
        os.execvp((prefix + arguments)[0], prefix + arguments)
    deadline = time.monotonic() + TIMEOUT
    try:
        # The shell prints READY-42, and not the echo of the line that was typed.
        ready = "$(echo 42)" if shell != "fish" else "(math 6 x 7)"
        os.write(terminal, f"{setup.format(share)}\necho READY-{ready}\n".encode())
        output, is_ready = read_until(terminal, b"READY-42", b"", deadline)
        if is_ready:
            os.write(terminal, b"keyhaul versi\t")
            output, _ = read_until(terminal, b"on", b"", time.monotonic() + 20)
            os.write(terminal, b"--js\t\n")
            output, has_result = read_until(terminal, b"version/1", output, deadline)
            if has_result:
                return True
        sys.stderr.write(f"{shell} printed {output!r}\n")
        return False
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def main():
    """Complete the call in each shell. End with an error that lists the shells that did not complete it."""
    share, prefix = sys.argv[1], sys.argv[2:]
    failed_shells = [shell for shell in SHELLS if not is_completed(prefix, shell, share)]
    if failed_shells:
        sys.exit(f"error: {', '.join(failed_shells)} did not complete the command line")
    print("bash, zsh and fish complete a command and a flag")


if __name__ == "__main__":
    main()
