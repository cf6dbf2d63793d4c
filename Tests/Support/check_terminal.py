#!/usr/bin/env python3
"""Run password commands with a real terminal and a real shell.

    check_terminal.py KEYHAUL

Check the input, leftover processes, and the ownership of the terminal. Each case has its own pseudo-terminal. Its
session leader is Keyhaul, a shell or another program, as in a terminal window.
"""

import contextlib
import os
import pathlib
import pty
import select
import signal
import subprocess
import sys
import tempfile
import termios
import time

SECRET = "correct horse"
# A password command that reads the terminal without echo, as password managers do, instead of standard input.
ASK = "stty -echo </dev/tty; printf 'PIN: ' >/dev/tty; read x </dev/tty; stty echo </dev/tty; echo \"$x\""


class Terminal:
    """A program with its own terminal."""

    def __init__(self, *command, folder):
        self.output = b""
        self.pid, self.terminal_end = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execv(command[0], list(command))

    def expect(self, text, seconds=20):
        """Wait until the terminal shows a text, and discard the output up to and including it."""
        deadline = time.monotonic() + seconds
        while text.encode() not in self.output:
            ready = select.select([self.terminal_end], [], [], max(0, deadline - time.monotonic()))[0]
            chunk = b""
            if ready:
                with contextlib.suppress(OSError):
                    chunk = os.read(self.terminal_end, 4096)
            if not chunk:
                raise AssertionError(f"{text!r} was not shown; the terminal showed {self.output[-600:]!r}")
            self.output += chunk
        self.output = self.output.partition(text.encode())[2]

    def type(self, text):
        """Write text to the terminal."""
        os.write(self.terminal_end, text.encode())

    @property
    def has_echo(self):
        """Return whether the terminal shows typed text."""
        return bool(termios.tcgetattr(self.terminal_end)[3] & termios.ECHO)

    def code(self, seconds=10):
        """Wait for the program to end, and return its exit code.

        The remaining output is read, because the program waits until it can write it.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if select.select([self.terminal_end], [], [], 0.05)[0]:
                with contextlib.suppress(OSError):
                    self.output += os.read(self.terminal_end, 4096)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
        raise AssertionError(f"the program did not end; it showed {self.output[-600:]!r}")

    def close(self):
        """Kill the program, and close the terminal."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        os.close(self.terminal_end)


def is_running(pid):
    """Return whether a process is running."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for_end(path, seconds=2):
    """Wait for the processes whose IDs are in a file. Return whether all of them ended in time."""
    deadline = time.monotonic() + seconds
    pids = [int(word) for word in path.read_text().split()]
    while any(map(is_running, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not any(map(is_running, pids))


def wait_for_file(path):
    """Wait until a file has a complete line."""
    deadline = time.monotonic() + 20
    while not path.exists() or not path.read_text().endswith("\n"):
        assert time.monotonic() < deadline, f"{path} was not written"
        time.sleep(0.02)


def check(condition, message):
    if not condition:
        raise AssertionError(message)


def password_command_reads_terminal(keyhaul, folder):
    """A password command reads the password from the terminal without echo."""
    terminal = Terminal(keyhaul, "verify", "b", "--password-command", ASK, folder=folder)
    terminal.expect("PIN: ")
    terminal.type(SECRET + "\n")
    code = terminal.code()
    check(code == 0, f"ended with {code}: {terminal.output!r}")
    check(SECRET.encode() not in terminal.output, "the password was shown")
    terminal.close()


def interrupt_ends_command(keyhaul, folder):
    """Ctrl-C during a password command ends Keyhaul, and the terminal shows typed text again."""
    terminal = Terminal(keyhaul, "verify", "b", "--password-command", ASK, folder=folder)
    terminal.expect("PIN: ")
    time.sleep(0.5)
    check(not terminal.has_echo, "the command did not switch the echo off")
    terminal.type("\x03")
    code = terminal.code()
    check(code == 130, f"ended with {code}: {terminal.output!r}")
    check(terminal.has_echo, "the echo is still off")
    terminal.close()


def stop_returns_terminal(keyhaul, folder):
    """Ctrl-Z during a password command returns the terminal to the shell, and `fg` continues."""
    terminal = Terminal("/bin/bash", "--norc", "--noprofile", "--noediting", "-i", folder=folder)
    # The terminal also shows the typed text, which must differ from the shell's output.
    terminal.type("PS1='rea''dy> '\n")
    terminal.expect("ready> ")
    terminal.type(f"{keyhaul} verify b --password-command \"$ASK\"; echo code $?.\n")
    terminal.expect("PIN: ")
    time.sleep(0.5)
    terminal.type("\x1a")
    terminal.expect("Stopped")
    check(terminal.has_echo, "the shell got a terminal without echo")
    terminal.type("fg\n")
    time.sleep(1)
    terminal.type(SECRET + "\n")
    terminal.expect("b is intact")
    terminal.type("\necho then $((40 + 2)).\n")
    terminal.expect("then 42.")
    terminal.close()


def background_command_stops(keyhaul, folder):
    """A password command in the background stops, and `fg` continues."""
    terminal = Terminal("/bin/bash", "--norc", "--noprofile", "--noediting", "-i", folder=folder)
    # The terminal also shows the typed text, which must differ from the shell's output.
    terminal.type("PS1='rea''dy> '\n")
    terminal.expect("ready> ")
    terminal.type(f"{keyhaul} verify b --password-command \"$ASK\" &\n")
    time.sleep(2)
    terminal.type("\n")
    terminal.expect("Stopped")
    terminal.type("fg\n")
    terminal.expect("PIN: ")
    time.sleep(0.5)
    terminal.type(SECRET + "\n")
    terminal.expect("b is intact")
    terminal.close()


def script_gets_terminal_back(keyhaul, folder):
    """In a script, without job control, the shell gets the terminal back after the command."""
    script = f"{keyhaul} verify b --quiet --password-command \"$ASK\"; echo code $?.; read y; echo got $y."
    terminal = Terminal("/bin/sh", "-c", script, folder=folder)
    terminal.expect("PIN: ")
    time.sleep(0.5)
    terminal.type(SECRET + "\n")
    terminal.expect("code 0.")
    terminal.type("line\n")
    terminal.expect("got line.")
    check(terminal.code() == 0, "the script failed")
    terminal.close()


def second_signal_ends_both(keyhaul, folder):
    """A second signal ends Keyhaul and the password command at once, and the script gets the terminal back."""
    pids = folder / "pids"
    command = f"trap '' TERM; echo $$ >{pids}; printf 'PIN: ' >/dev/tty; read x </dev/tty; sleep 300"
    terminal = Terminal(
        "/bin/sh", "-c", f'{keyhaul} verify b --password-command "$1"; echo code $?.; read y; echo got $y.', "sh",
        command, folder=folder)
    terminal.expect("PIN: ")
    time.sleep(0.5)
    program = subprocess.run(["pgrep", "-P", str(terminal.pid)], capture_output=True, text=True).stdout.split()[0]
    os.kill(int(program), signal.SIGTERM)
    os.kill(int(program), signal.SIGTERM)
    terminal.expect("code 143.")
    check(wait_for_end(pids), "the password command is still running")
    terminal.type("line\n")
    terminal.expect("got line.")
    terminal.close()


def open_pipe_causes_no_delay(keyhaul, folder):
    """A process that keeps the pipe of a finished password command open causes no delay, and is killed."""
    pids = folder / "left"
    started = time.monotonic()
    result = subprocess.run(
        [keyhaul, "verify", "b", "--password-command", f"sleep 300 & echo $! >{pids}; cat secret"], cwd=folder,
        capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    check(result.returncode == 0, f"ended with {result.returncode}: {result.stderr!r}")
    check(time.monotonic() - started < 20, "Keyhaul waited for the process that keeps the pipe open")
    check(wait_for_end(pids), "the process that keeps the pipe open is still running")


def quick_command_is_not_stopped(keyhaul, folder):
    """Keyhaul does not mistake the end of a quick password command for a stop, so it does not stop itself."""
    # Keyhaul runs in its own process group, in the session of this script. A shell of the session could continue the
    # group. The system ignores stop signals to groups that no shell could continue.
    for _ in range(600):
        process = subprocess.Popen(
            [keyhaul, "verify", "b", "--quiet", "--password-command", f"echo '{SECRET}'"], cwd=folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=os.setpgrp)
        try:
            _, errors = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError("Keyhaul stopped itself") from None
        check(process.returncode == 0, f"ended with {process.returncode}: {errors!r}")


def signal_ends_command(keyhaul, folder):
    """A signal to Keyhaul also ends the password command."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        pids = folder / f"signaled-{number}"
        command = f"sleep 300 & echo $$ $! >{pids}; sleep 300"
        process = subprocess.Popen([keyhaul, "verify", "b", "--password-command", command], cwd=folder,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for_file(pids)
        started = time.monotonic()
        process.send_signal(number)
        check(process.wait(10) == 128 + number, f"ended with {process.returncode}")
        check(time.monotonic() - started < 2, "the end took too long")
        check(wait_for_end(pids), f"processes are still running after {number.name}")


def background_process_stops(keyhaul, folder):
    """If Keyhaul is in the background and its command reads the terminal, both stop."""
    script = (
        "import os, subprocess, sys\n"
        "child = subprocess.Popen(sys.argv[1:], preexec_fn=os.setpgrp)\n"
        "pid, status = os.waitpid(child.pid, os.WUNTRACED)\n"
        "print('stopped.' if os.WIFSTOPPED(status) else f'code {os.waitstatus_to_exitcode(status)}.', flush=True)\n"
        "if os.WIFSTOPPED(status): os.killpg(child.pid, 9)\n")
    terminal = Terminal(sys.executable, "-c", script, keyhaul, "verify", "b", "--quiet", "--password-command", ASK,
                        folder=folder)
    terminal.expect("stopped.")
    terminal.close()


def list_of_another_user(keyhaul, folder):
    """A password list must belong to the user or to root. This needs root, and a program that all users can run."""
    # Numeric IDs, because no account is needed.
    user, other_user = 12345, 23456
    with tempfile.TemporaryDirectory(dir="/tmp") as shared_folder:
        os.chmod(shared_folder, 0o755)

        def verify():
            command = [keyhaul, "verify", f"{shared_folder}/b", "--passwords", f"{shared_folder}/list"]
            return subprocess.run(
                command, user=user, group=user, extra_groups=[], capture_output=True, text=True, cwd="/",
                stdin=subprocess.DEVNULL, env={"PATH": os.environ["PATH"]})

        try:
            subprocess.run([keyhaul, "version"], user=user, check=True, capture_output=True, cwd="/")
        except (PermissionError, subprocess.CalledProcessError):
            print("SKIPPED: password lists of root and of other users, because this needs root")
            return
        subprocess.run(["cp", "-R", str(folder / "b"), str(folder / "secret"), shared_folder], check=True)
        pathlib.Path(f"{shared_folder}/list").write_text(f"* command:cat {shared_folder}/secret\n")
        subprocess.run(["chmod", "-R", "a+rX", shared_folder], check=True)
        for owner, expected in ((0, 0), (user, 0), (other_user, 14)):
            os.chown(f"{shared_folder}/list", owner, owner)
            result = verify()
            check(result.returncode == expected, f"{owner}: ended with {result.returncode}: {result.stderr}")
        os.chown(f"{shared_folder}/list", 0, 0)
        for owner, expected in ((0, 0), (user, 0), (other_user, 14)):
            os.chown(shared_folder, owner, owner)
            result = verify()
            check(result.returncode == expected, f"folder of {owner}: ended with {result.returncode}: {result.stderr}")
        os.chown(shared_folder, 0, 0)


CASES = [
    password_command_reads_terminal, interrupt_ends_command, stop_returns_terminal, background_command_stops,
    script_gets_terminal_back, second_signal_ends_both, open_pipe_causes_no_delay, quick_command_is_not_stopped,
    signal_ends_command,
    background_process_stops, list_of_another_user]


def main():
    keyhaul = os.path.abspath(sys.argv[1])
    os.environ["ASK"] = ASK
    with tempfile.TemporaryDirectory() as folder_name:
        folder = pathlib.Path(folder_name)
        (folder / "secret").write_text(SECRET + "\n")
        (folder / "secret").chmod(0o600)
        home = ["--home", str(folder / "home"), "--quiet", "--no-input"]
        subprocess.run([keyhaul, "device", "create", "phone", "--from", "old-phone", *home], check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run([keyhaul, "backup", "phone", "-o", str(folder / "b") + "/", "--rounds", "1", "--password-file",
                        str(folder / "secret"), *home], check=True, stdout=subprocess.DEVNULL)
        for case in CASES:
            case(keyhaul, folder)
            print(f"{case.__name__}: passed")


main()
