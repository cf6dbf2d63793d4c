"""Virtual devices that `keyhaul device serve` shows to backup clients. Needs only Python's standard library."""

import json
import os
import signal
import subprocess

ITERATIONS = "1000"


class Difference(Exception):
    """A result that differs from the expected one."""


def require(condition, text):
    """Raise Difference with a text if the condition is false."""
    if not condition:
        raise Difference(text)


class ServedDevices:
    """A folder with virtual devices, which one process of the program serves."""

    def __init__(self, program, folder):
        self.program, self.folder, self.server = program, folder, None
        self.home = folder / "devices"
        self.environment = {
            **os.environ, "KEYHAUL_HOME": str(self.home), "HOME": str(folder / "home"),
            "XDG_CONFIG_HOME": str(folder / "home/.config"), "TMPDIR": str(folder), "NO_COLOR": "1",
        }
        (folder / "home").mkdir()

    def keyhaul(self, *arguments, status=0, passcode=None):
        """Run the program and return its output. `status` is the allowed exit code, or a tuple of codes."""
        run = subprocess.run([self.program, *arguments], env=self.environment, capture_output=True, text=True, timeout=300)
        allowed = status if isinstance(status, tuple) else (status,)
        require(run.returncode in allowed, f"keyhaul {' '.join(arguments)}: {run.returncode}\n{run.stdout}{run.stderr}")
        return run.stdout

    def serve(self, *names, trust="always"):
        self.log = open(self.folder / "server.log", "a+")
        self.server = subprocess.Popen(
            [self.program, "device", "serve", *names, "--trust", trust, "--rounds", ITERATIONS], env=self.environment,
            stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = self.server.stdout.readline()
        require(line.startswith("export USBMUXD_SOCKET_ADDRESS="), f"the server said {line!r}")
        self.environment["USBMUXD_SOCKET_ADDRESS"] = line.strip().split("=", 1)[1]

    def stop(self):
        self.server.send_signal(signal.SIGINT)
        status = self.server.wait(timeout=30)
        require(status == 0, f"the server ended with {status}")

    def client(self, *arguments, status=0, environment=None, timeout=180):
        """Run a backup client and return its output and errors. `status` is as for `keyhaul`."""
        run = subprocess.run(
            [str(argument) for argument in arguments], env={**self.environment, **(environment or {})},
            capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
        allowed = status if isinstance(status, tuple) else (status,)
        require(
            run.returncode in allowed, f"{' '.join(map(str, arguments))}: {run.returncode}\n{run.stdout}{run.stderr}\n"
            + (self.folder / "server.log").read_text()[-3000:])
        return run.stdout + run.stderr

    def udid(self, name):
        return json.loads((self.home / name / "device.json").read_text())["udid"]

    def entries(self, source, password=None, home=None):
        """Return the items of a device or backup, as JSON. The device key of a backup comes from its source device."""
        arguments = ["export", str(source), "-o", "-", "--format", "json", "--reveal"]
        if password:
            arguments += ["--password-file", str(self.write_secret(password))]
        if home:
            arguments = ["--home", str(home), *arguments]
        return json.loads(self.keyhaul(*arguments, status=(0, 3)))["items"]

    def items(self, name, home=None):
        """Return the items of a device as sorted text, to compare two devices."""
        return sorted(
            json.dumps({key: value for key, value in item.items() if key not in ("index", "row", "id")}, sort_keys=True)
            for item in self.entries(name, home=home))

    def write_secret(self, text):
        """Write a secret to a file, and return its path."""
        path = self.folder / f"secret-{text}"
        path.write_text(text)
        path.chmod(0o600)
        return path

    def verify(self, path, password=None):
        arguments = ["verify", str(path)]
        if password:
            arguments += ["--password-file", str(self.write_secret(password))]
        self.keyhaul(*arguments)

    def plan(self, path, target, password=None):
        arguments = ["plan", str(path), "--to", target, "--json"]
        if password:
            arguments += ["--password-file", str(self.write_secret(password))]
        return json.loads(self.keyhaul(*arguments, status=(0, 3, 4, 5)))
