#!/usr/bin/env python3
"""Check the recipes for other systems: the Homebrew formula, the Nix expression and the GitHub actions.

    packaging/check_recipes.py ARCHIVE

Ruby parses the formula, and Nix parses the expression. The format and the shell code of an action are checked, and its
steps are run as a GitHub runner runs them: `setup` installs the program in ARCHIVE, and `plan` runs this program on the
example of the tutorial. The formula and the expression are not run, because Homebrew and Nix are not installed here.
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
MEMBER_TYPES = {"name": str, "description": str, "inputs": dict, "runs": dict}
# In the example of the tutorial, the push token of the old phone stays behind.
EXPECTATIONS = """{
  "format": "plan-expectations/1",
  "expectations": [ { "account": "push token", "expect": "stays-behind" } ]
}
"""


def run(*command, **options):
    """Run a command, which has to succeed."""
    return subprocess.run(command, check=True, **options)


def require(condition, message):
    """End with an error if a condition is false."""
    if not condition:
        sys.exit(f"error: {message}")


def load_action(name):
    """Load an action, and check its format."""
    path = TOP / "packaging/actions" / name / "action.yml"
    action = yaml.safe_load(path.read_text(encoding="utf-8"))
    require(set(action) == set(MEMBER_TYPES), f"{path.name} of {name} has members {sorted(action)}")
    for member, member_type in MEMBER_TYPES.items():
        require(isinstance(action[member], member_type), f"{name}: {member} is not a {member_type.__name__}")
    check_inputs(name, action["inputs"])
    require(
        action["runs"]["using"] == "composite" and set(action["runs"]) == {"using", "steps"}, f"{name} is not composite"
    )
    for step in action["runs"]["steps"]:
        check_step(name, step, action["inputs"])
    return action


def check_inputs(name, inputs):
    """Check the definitions of an action's inputs."""
    for key, definition in inputs.items():
        require(
            set(definition) <= {"description", "required", "default"}
            and isinstance(definition.get("description"), str),
            f"{name}: input {key} has members {sorted(definition)}",
        )
        require(isinstance(definition["required"], bool) and definition["required"] == ("default" not in definition),
                f"{name}: input {key} is either required or has a default")


def check_step(name, step, inputs):
    """Check the members, the inputs and the shell code of an action's step."""
    require(
        set(step) == {"name", "shell", "env", "run"} and step["shell"] == "bash",
        f"{name}: a step has {sorted(step)}",
    )
    # Inputs must be passed as variables, so that their text is never run as code.
    require("${{" not in step["run"], f"{name}: the shell code contains an expression")
    for input_name in re.findall(r"inputs\.(\w+)", " ".join(step["env"].values())):
        require(input_name in inputs, f"{name}: there is no input {input_name}")
    run("bash", "-n", "-c", step["run"])


def run_steps(action, inputs, folder, path):
    """Run the steps of an action as a runner does. Return the result of the last step, or of the first that failed."""
    values = {f"inputs.{key}": str(definition.get("default", "")) for key, definition in action["inputs"].items()}
    values |= {f"inputs.{key}": value for key, value in inputs.items()}
    values |= {"github.server_url": "https://invalid.example", "github.action_repository": "OWNER/keyhaul"}
    for step in action["runs"]["steps"]:
        environment = {key: re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda match: values[match[1]], value)
                       for key, value in step["env"].items()}
        environment |= {"PATH": path, "HOME": str(folder), "RUNNER_TEMP": str(folder), "LC_ALL": "C.UTF-8",
                        "GITHUB_PATH": str(folder / "github-path")}
        completed = subprocess.run(["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
                                   env=environment, capture_output=True, text=True)
        if completed.returncode != 0:
            return completed
    return completed


def check_setup(archive, folder):
    """Check that `setup` installs the archive, and refuses it if its SHA-256 is different. Return the program's folder.
    """
    action = load_action("setup")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    version = re.match(r"keyhaul-([\d.]+)-linux", archive.name)[1]
    inputs = {"version": version, "sha256": digest, "archive": archive.as_uri()}
    completed = run_steps(action, inputs, folder, os.environ["PATH"])
    require(
        completed.returncode == 0 and completed.stdout.startswith(f"keyhaul {version}"),
        f"setup failed: {completed.stderr}",
    )
    completed = run_steps(action, inputs | {"sha256": "0" * 64}, folder, os.environ["PATH"])
    require(completed.returncode != 0, "setup accepts an archive with a different SHA-256")
    return (folder / "github-path").read_text().split("\n")[0]


def check_plan(program_folder, folder):
    """Check that `plan` succeeds if the expectations are met, and fails with code 2 if they are not."""
    action = load_action("plan")
    path = program_folder + ":" + os.environ["PATH"]
    (folder / "right.json").write_text(EXPECTATIONS, encoding="utf-8")
    (folder / "wrong.json").write_text(EXPECTATIONS.replace('"stays-behind"', '"migrates"'), encoding="utf-8")
    inputs = {"phone": "old-phone", "expect": str(folder / "right.json")}
    completed = run_steps(action, inputs, folder, path)
    require(
        completed.returncode == 0, f"plan failed with {completed.returncode}: {completed.stdout}{completed.stderr}"
    )
    completed = run_steps(action, inputs | {"expect": str(folder / "wrong.json")}, folder, path)
    require(
        completed.returncode == 2,
        f"plan exits with {completed.returncode} for a failed expectation: {completed.stderr}",
    )


def main():
    """Parse the recipes that cannot be run here, and run the others."""
    archive = pathlib.Path(sys.argv[1]).resolve()
    run("ruby", "-c", TOP / "packaging/homebrew/keyhaul.rb", stdout=subprocess.DEVNULL)
    run("nix-instantiate", "--parse", TOP / "packaging/nix/keyhaul.nix", stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        program_folder = check_setup(archive, folder)
        check_plan(program_folder, folder)
    print("the formula and the expression can be parsed; the actions are valid, and their steps run")


if __name__ == "__main__":
    main()
