#!/usr/bin/env python3
"""Checks the recipes for systems that are not available here: the formula, the Nix expression and GitHub's actions.

    packaging/check_recipes.py PROGRAM ARCHIVE

Ruby parses the formula, and Nix the expression. The format and the shell code of an action are checked, and its step is run as a
runner runs it: `setup` fetches ARCHIVE, `plan` runs PROGRAM on the tutorial's example. There is no Homebrew, no Nix store and no
GitHub runner here, so their own work is not checked.
"""

import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import yaml

TOP = pathlib.Path(__file__).resolve().parent.parent
MEMBERS = {"name": str, "description": str, "inputs": dict, "runs": dict}


def run(*command, **options):
    return subprocess.run(command, check=True, **options)


def require(condition, what):
    if not condition:
        sys.exit(f"error: {what}")


def action(name):
    path = TOP / "packaging/actions" / name / "action.yml"
    text = yaml.safe_load(path.read_text(encoding="utf-8"))
    require(set(text) == set(MEMBERS), f"{path.name} of {name} has members {sorted(text)}")
    for member, kind in MEMBERS.items():
        require(isinstance(text[member], kind), f"{name}: {member} is no {kind.__name__}")
    for key, given in text["inputs"].items():
        require(set(given) <= {"description", "required", "default"} and isinstance(given.get("description"), str),
                f"{name}: input {key} has members {sorted(given)}")
        require(isinstance(given["required"], bool) and given["required"] == ("default" not in given),
                f"{name}: input {key} is either required or has a default")
    require(text["runs"]["using"] == "composite" and set(text["runs"]) == {"using", "steps"}, f"{name} is not composite")
    for step in text["runs"]["steps"]:
        require(set(step) == {"name", "shell", "env", "run"} and step["shell"] == "bash", f"{name}: a step has {sorted(step)}")
        # An input reaches the shell as a variable, never as part of its text.
        require("${{" not in step["run"], f"{name}: an expression stands inside of the shell's text")
        for used in re.findall(r"inputs\.(\w+)", " ".join(step["env"].values())):
            require(used in text["inputs"], f"{name}: there is no input {used}")
        run("bash", "-n", "-c", step["run"])
    return text


def play(text, given, folder, path):
    """Runs the steps with the given inputs, as a runner does."""
    values = {f"inputs.{key}": str(each.get("default", "")) for key, each in text["inputs"].items()}
    values |= {f"inputs.{key}": value for key, value in given.items()}
    values |= {"github.server_url": "https://invalid.example", "github.action_repository": "OWNER/keyhaul"}
    for step in text["runs"]["steps"]:
        environment = {key: re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda found: values[found[1]], value)
                       for key, value in step["env"].items()}
        environment |= {"PATH": path, "HOME": str(folder), "RUNNER_TEMP": str(folder), "LC_ALL": "C.UTF-8",
                        "GITHUB_PATH": str(folder / "github-path")}
        done = subprocess.run(["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
                              env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            return done
    return done


def main():
    program, archive = (pathlib.Path(name).resolve() for name in sys.argv[1:3])
    run("ruby", "-c", TOP / "packaging/homebrew/keyhaul.rb", stdout=subprocess.DEVNULL)
    run("nix-instantiate", "--parse", TOP / "packaging/nix/keyhaul.nix", stdout=subprocess.DEVNULL)
    setup, plan = action("setup"), action("plan")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        version = re.match(r"keyhaul-([\d.]+)-linux", archive.name)[1]
        given = {"version": version, "sha256": digest, "archive": archive.as_uri()}
        done = play(setup, given, folder, os.environ["PATH"])
        require(done.returncode == 0 and done.stdout.startswith(f"keyhaul {version}"), f"setup failed: {done.stderr}")
        done = play(setup, given | {"sha256": "0" * 64}, folder, os.environ["PATH"])
        require(done.returncode != 0, "setup takes an archive with another SHA-256")
        path = (folder / "github-path").read_text().split("\n")[0] + ":" + os.environ["PATH"]
        (folder / "right.json").write_text(EXPECTED, encoding="utf-8")
        (folder / "wrong.json").write_text(EXPECTED.replace('"stays-behind"', '"migrates"'), encoding="utf-8")
        given = {"phone": "old-phone", "expect": str(folder / "right.json")}
        done = play(plan, given, folder, path)
        require(done.returncode == 0, f"plan failed with {done.returncode}: {done.stdout}{done.stderr}")
        done = play(plan, given | {"expect": str(folder / "wrong.json")}, folder, path)
        require(done.returncode == 2, f"plan ends with {done.returncode} where an expectation is missed: {done.stderr}")
    print("the formula and the expression parse; the actions have their form, and their steps run")


EXPECTED = """{
  "format": "plan-expectations/1",
  "expectations": [ { "account": "push token", "expect": "stays-behind" } ]
}
"""


if __name__ == "__main__":
    main()
