#!/usr/bin/env python3
"""Runs the workflow that docs/Tutorials/TestYourAppsMigration.md prints, step by step and line by line, in a fresh root.

    check_workflow.py

The root is this machine's system without what the tutorial's image lacks: the development files of the libraries that
Package.swift wants, make, sudo and Python, apt's lists, and everything of this repository. It is an overlay that is gone
afterwards. apt-get, git, swift, the shell and the build are real; the packages come from the system's own archive.
Needs root on Linux, for mounts; where it cannot be had, that is an error and no success.
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
LACKING_TOOLS = ["make", "gmake", "sudo", "python3", "cmake", "ninja", "curl", "wget"]
EXPECTED = "4 of 4 expectations met.\n"

NOT_COVERED = """not covered: the image itself (its system and its Swift are those of this machine, named above), GitHub's runner, and
what actions/checkout does beyond a clone"""


def fail(what, why):
    sys.exit(f"error: {what}\n  why: {why}")


def block(language):
    found = re.search(rf"^```{language}\n(.*?)\n```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    return found.group(1) if found else fail(f"{PAGE.name} has no block of {language}", "it is what is run")


def steps(text):
    """The steps of the workflow's one job. A line of a form that is not known here ends the check."""
    found, in_steps = [], False
    for line in text.split("\n"):
        if line.strip() == "steps:":
            in_steps = True
        elif in_steps:
            name = re.fullmatch(r" {6}- name: (.+)", line)
            uses = re.fullmatch(r" {8}uses: (.+)", line)
            member = re.fullmatch(r" {10}(\w+): (.+)", line)
            if name:
                found.append({"name": name.group(1), "uses": None, "with": {}, "run": []})
            elif uses:
                found[-1]["uses"] = uses.group(1)
            elif re.fullmatch(r" {8}(with:|run: \|)", line):
                pass
            elif found[-1]["uses"] and member:
                found[-1]["with"][member.group(1)] = member.group(2)
            elif not found[-1]["uses"] and re.match(r" {10}\S", line):
                found[-1]["run"].append(line[10:])
            else:
                fail("the workflow cannot be read", f"a line of another form: {line!r}")
    return found


def wanted_packages():
    return re.findall(r'\.apt\(\["([^"]+)"\]\)', (ROOT / "Package.swift").read_text(encoding="utf-8"))


def run(*command, **options):
    subprocess.run(command, check=True, **options)


class FreshRoot:
    def __init__(self, folder):
        self.root = folder / "root"
        layers = folder / "layers"
        for each in (self.root, layers):
            each.mkdir()
        # An overlay cannot stand on an overlay, which a container's own file system is.
        run("mount", "-t", "tmpfs", "-o", "size=8g", "tmpfs", layers)
        for each in ("upper", "work"):
            (layers / each).mkdir()
        run("mount", "-t", "overlay", "overlay", "-o",
            f"lowerdir=/,upperdir={layers}/upper,workdir={layers}/work", self.root)
        run("mount", "-t", "proc", "proc", self.root / "proc")
        run("mount", "--rbind", "/dev", self.root / "dev")
        run("mount", "-t", "tmpfs", "tmpfs", self.root / "tmp")
        run("mount", "-t", "tmpfs", "tmpfs", self.root / "root")
        # This repository is not there but for what is checked out.
        run("mount", "-t", "tmpfs", "tmpfs", self.root / ROOT.relative_to("/"))
        self.environment = {
            "PATH": f"{pathlib.Path(shutil.which('swift') or fail('there is no swift', 'it is what builds')).resolve().parent}"
                    ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive", "GITHUB_PATH": "/srv/github-path"}

    def call(self, *command, cwd="/", **options):
        return subprocess.run(
            ["chroot", self.root, "/bin/sh", "-c", 'cd "$0" && exec "$@"', cwd, *command], env=self.environment,
            **options)

    def make_bare(self, packages):
        self.call("apt-get", "remove", "--purge", "-y", *packages, check=True, stdout=subprocess.DEVNULL)
        for name in packages:
            if self.call("dpkg", "-s", name, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
                fail("the root is not bare", f"{name} is still installed")
        shutil.rmtree(self.root / "var/lib/apt/lists", ignore_errors=True)
        (self.root / "var/lib/apt/lists/partial").mkdir(parents=True)
        for tool in LACKING_TOOLS:
            for folder in ("usr/bin", "usr/local/bin", "usr/sbin"):
                (self.root / folder / tool).unlink(missing_ok=True)
        (self.root / "srv/github-path").touch()
        (self.root / "srv/workspace").mkdir()

    def lend_repository(self):
        """This repository as it was committed, and the packages that it wants, where they were fetched before."""
        run("git", "clone", "--quiet", "--bare", ROOT, self.root / "srv/keyhaul.git")
        rules = []
        for line in (ROOT / "Package.resolved").read_text(encoding="utf-8").split("\n"):
            found = re.search(r'"location" : "(https://[^"]+)"', line)
            if not found:
                continue
            name = found.group(1).rsplit("/", 1)[-1].removesuffix(".git")
            for mirror in (ROOT / ".build/repositories").glob(f"{name}-*"):
                copy = self.root / "srv/packages" / name
                run("git", "clone", "--quiet", "--mirror", mirror, copy)
                rules += ["-c", f"url./srv/packages/{name}.insteadOf={found.group(1)}"]
        for rule in rules[1::2]:
            key, _, value = rule.rpartition("=")
            self.call("git", "config", "--system", key, value, check=True)
        self.call("git", "config", "--system", "--add", "safe.directory", "*", check=True)

    def check_out(self, step, list_of_expectations):
        if step["uses"] != "actions/checkout@v4":
            fail(f"{step['uses']} cannot be played", "actions/checkout@v4 can")
        place = self.root / "srv/workspace" / step["with"].get("path", "")
        if "repository" in step["with"]:
            self.call("git", "clone", "--quiet", "--depth", "1", "file:///srv/keyhaul.git",
                      f"/srv/workspace/{step['with'].get('path', '')}", check=True)
        else:
            place.mkdir(exist_ok=True)
            (place / "migration.json").write_text(list_of_expectations, encoding="utf-8")

    def run_lines(self, lines):
        """As the runner does it: one shell that stops at the first line that fails; each line is shown before it runs."""
        written = [line for line in (self.root / "srv/github-path").read_text().split("\n") if line]
        script = "set -e\n" + "".join(f"printf '%s\\n' {quoted('  $ ' + line)} >&2\n{line}\n" for line in lines)
        environment = dict(self.environment)
        environment["PATH"] = ":".join([*reversed(written), self.environment["PATH"]])
        return subprocess.run(
            ["chroot", self.root, "/bin/sh", "-c", f"cd /srv/workspace && exec /bin/sh -e -c {quoted(script)}"],
            env=environment, stdout=subprocess.PIPE, text=True)


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def main():
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    if os.geteuid() != 0:
        fail("a fresh root cannot be made", "that needs root, for mounts")
    if "KEYHAUL_OWN_MOUNTS" not in os.environ:
        os.environ["KEYHAUL_OWN_MOUNTS"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, __file__])
    with tempfile.TemporaryDirectory() as folder:
        root = FreshRoot(pathlib.Path(folder))
        try:
            root.lend_repository()
            root.make_bare(wanted_packages())
            swift = root.call("swift", "--version", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            system = re.search(r'PRETTY_NAME="([^"]+)"', (root.root / "etc/os-release").read_text()).group(1)
            print(f"{system}, {swift.stdout.splitlines()[0]}", flush=True)
            output, job = "", steps(block("yaml"))
            for step in job:
                print(f"== {step['name']}", flush=True)
                if step["uses"]:
                    root.check_out(step, block("json"))
                    continue
                ended = root.run_lines(step["run"])
                output = ended.stdout
                print(output[-2000:], end="", flush=True)
                if ended.returncode != 0:
                    fail(f"the step \"{step['name']}\" failed", f"it ended with {ended.returncode}")
            if not output.endswith(EXPECTED):
                fail("the last step printed something else", f"expected {EXPECTED!r} at the end")
            print(f"{len(job)} steps ran as printed\n{NOT_COVERED}")
        finally:
            run("umount", "--recursive", "--lazy", root.root)
            run("umount", "--lazy", pathlib.Path(folder) / "layers")


if __name__ == "__main__":
    main()
