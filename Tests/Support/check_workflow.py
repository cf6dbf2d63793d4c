#!/usr/bin/env python3
"""Run the workflow in docs/Tutorials/TestYourAppsMigration.md line by line in a fresh root.

    check_workflow.py

The root is this machine's system without everything that the tutorial's image lacks: the development files of the
libraries in Package.swift, make, sudo and Python, apt's lists, and this repository. It is a temporary overlay. apt-get,
git, swift, the shell and the build are real, and the packages come from the system's archive. Needs root on Linux, for
mounts. Without root, the check fails.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "Tutorials" / "TestYourAppsMigration.md"
MISSING_TOOLS = ["make", "gmake", "sudo", "python3", "cmake", "ninja", "curl", "wget"]
EXPECTED_OUTPUT = "4 of 4 expectations met.\n"

NOT_COVERED = """not covered: the image (the system and Swift are those of this machine, as above), GitHub's runner, and
everything that actions/checkout does in addition to a clone"""


def fail(message, reason):
    """Exit with an error in two parts."""
    sys.exit(f"error: {message}\n  why: {reason}")


def code_block(language):
    """Return the first code block of a language in the tutorial."""
    match = re.search(rf"^```{language}\n(.*?)\n```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    return match.group(1) if match else fail(f"{PAGE.name} has no {language} block", "the check runs that block")


def parse_steps(text):
    """Return the steps of the workflow's only job. An unknown kind of line ends the check."""
    steps, in_steps = [], False
    for line in text.split("\n"):
        if line.strip() == "steps:":
            in_steps = True
        elif in_steps:
            name = re.fullmatch(r" {6}- name: (.+)", line)
            uses = re.fullmatch(r" {8}uses: (.+)", line)
            member = re.fullmatch(r" {10}(\w+): (.+)", line)
            if name:
                steps.append({"name": name.group(1), "uses": None, "with": {}, "run": []})
            elif uses:
                steps[-1]["uses"] = uses.group(1)
            elif re.fullmatch(r" {8}(with:|run: \|)", line):
                pass
            elif steps[-1]["uses"] and member:
                steps[-1]["with"][member.group(1)] = member.group(2)
            elif not steps[-1]["uses"] and re.match(r" {10}\S", line):
                steps[-1]["run"].append(line[10:])
            else:
                fail("the workflow cannot be parsed", f"unknown kind of line: {line!r}")
    return steps


def system_packages():
    """Return the system packages that Package.swift names."""
    return re.findall(r'\.apt\(\["([^"]+)"\]\)', (ROOT / "Package.swift").read_text(encoding="utf-8"))


def run(*command, **options):
    """Run a command, which has to succeed."""
    subprocess.run(command, check=True, **options)


class FreshRoot:
    """A root folder of an overlay, in which commands run."""

    def __init__(self, folder):
        self.root = folder / "root"
        layers = folder / "layers"
        for new_folder in (self.root, layers):
            new_folder.mkdir()
        # The upper layer is on a tmpfs, because a container's root is an overlay, which cannot be the base of another.
        run("mount", "-t", "tmpfs", "-o", "size=8g", "tmpfs", layers)
        for name in ("upper", "work"):
            (layers / name).mkdir()
        run("mount", "-t", "overlay", "overlay", "-o",
            f"lowerdir=/,upperdir={layers}/upper,workdir={layers}/work", self.root)
        run("mount", "-t", "proc", "proc", self.root / "proc")
        run("mount", "--rbind", "/dev", self.root / "dev")
        run("mount", "-t", "tmpfs", "tmpfs", self.root / "tmp")
        run("mount", "-t", "tmpfs", "tmpfs", self.root / "root")
        # Hides this repository. Only the checkout is visible.
        run("mount", "-t", "tmpfs", "tmpfs", self.root / ROOT.relative_to("/"))
        swift = shutil.which("swift") or fail("swift was not found", "the workflow builds with it")
        self.environment = {
            "PATH": f"{pathlib.Path(swift).resolve().parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root",
            "LC_ALL": "C.UTF-8",
            "DEBIAN_FRONTEND": "noninteractive",
            "GITHUB_PATH": "/srv/github-path",
        }

    def call(self, *command, cwd="/", **options):
        """Run a command in the root."""
        return subprocess.run(
            ["chroot", self.root, "/bin/sh", "-c", 'cd "$0" && exec "$@"', cwd, *command], env=self.environment,
            **options)

    def remove_packages(self, packages):
        """Remove everything that the image lacks."""
        self.call("apt-get", "remove", "--purge", "-y", *packages, check=True, stdout=subprocess.DEVNULL)
        for name in packages:
            if self.call("dpkg", "-s", name, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
                fail("a package cannot be removed", f"{name} is still installed")
        shutil.rmtree(self.root / "var/lib/apt/lists", ignore_errors=True)
        (self.root / "var/lib/apt/lists/partial").mkdir(parents=True)
        for tool in MISSING_TOOLS:
            for folder in ("usr/bin", "usr/local/bin", "usr/sbin"):
                (self.root / folder / tool).unlink(missing_ok=True)
        (self.root / "srv/github-path").touch()
        (self.root / "srv/workspace").mkdir()

    def copy_repository(self):
        """Copy the committed state of this repository, and the package dependencies that were fetched before."""
        run("git", "clone", "--quiet", "--bare", ROOT, self.root / "srv/keyhaul.git")
        resolved = (ROOT / "Package.resolved").read_text(encoding="utf-8")
        for address in re.findall(r'"location" : "(https://[^"]+)"', resolved):
            name = address.rsplit("/", 1)[-1].removesuffix(".git")
            for mirror in (ROOT / ".build/repositories").glob(f"{name}-*"):
                run("git", "clone", "--quiet", "--mirror", mirror, self.root / "srv/packages" / name)
                # git reads the copy in place of the address.
                self.call(
                    "git", "config", "--system", f"url./srv/packages/{name}.insteadOf", address, check=True)
        self.call("git", "config", "--system", "--add", "safe.directory", "*", check=True)

    def check_out(self, step, expectations):
        """Perform a step that uses actions/checkout."""
        if step["uses"] != "actions/checkout@v4":
            fail(f"{step['uses']} is not supported", "only actions/checkout@v4 is")
        target = self.root / "srv/workspace" / step["with"].get("path", "")
        if "repository" in step["with"]:
            self.call("git", "clone", "--quiet", "--depth", "1", "file:///srv/keyhaul.git",
                      f"/srv/workspace/{step['with'].get('path', '')}", check=True)
        else:
            target.mkdir(exist_ok=True)
            (target / "migration.json").write_text(expectations, encoding="utf-8")

    def run_lines(self, lines):
        """Run lines like the runner: in one shell, which prints each line and stops at the first error."""
        added_paths = [line for line in (self.root / "srv/github-path").read_text().split("\n") if line]
        script = "set -e\n" + "".join(f"printf '%s\\n' {quoted('  $ ' + line)} >&2\n{line}\n" for line in lines)
        environment = dict(self.environment)
        environment["PATH"] = ":".join([*reversed(added_paths), self.environment["PATH"]])
        return subprocess.run(
            ["chroot", self.root, "/bin/sh", "-c", f"cd /srv/workspace && exec /bin/sh -e -c {quoted(script)}"],
            env=environment, stdout=subprocess.PIPE, text=True)


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def main():
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    if os.geteuid() != 0:
        fail("a fresh root cannot be made", "the mounts need root")
    if "KEYHAUL_OWN_MOUNTS" not in os.environ:
        os.environ["KEYHAUL_OWN_MOUNTS"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, __file__])
    with tempfile.TemporaryDirectory() as folder:
        root = FreshRoot(pathlib.Path(folder))
        try:
            root.copy_repository()
            root.remove_packages(system_packages())
            swift = root.call("swift", "--version", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            system = re.search(r'PRETTY_NAME="([^"]+)"', (root.root / "etc/os-release").read_text()).group(1)
            print(f"{system}, {swift.stdout.splitlines()[0]}", flush=True)
            output, job = "", parse_steps(code_block("yaml"))
            for step in job:
                print(f"== {step['name']}", flush=True)
                if step["uses"]:
                    root.check_out(step, code_block("json"))
                    continue
                process = root.run_lines(step["run"])
                output = process.stdout
                print(output[-2000:], end="", flush=True)
                if process.returncode != 0:
                    fail(f"the step \"{step['name']}\" failed", f"it ended with {process.returncode}")
            if not output.endswith(EXPECTED_OUTPUT):
                fail("the last step did not print the expected line", f"expected {EXPECTED_OUTPUT!r} at the end")
            print(f"{len(job)} steps passed\n{NOT_COVERED}")
        finally:
            run("umount", "--recursive", "--lazy", root.root)
            run("umount", "--lazy", pathlib.Path(folder) / "layers")


if __name__ == "__main__":
    main()
