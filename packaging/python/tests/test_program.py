"""Test how the program is found, and the command that replaces itself with the program."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys

import pytest

import keyhaul
from keyhaul import _program

ROOT = pathlib.Path(__file__).resolve().parents[3]


def create_executable(path: pathlib.Path, text: str = "\x7fELF") -> pathlib.Path:
    """Create an executable file, which by default starts as an ELF binary does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def no_installed_program(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """Hide the programs of this machine from the tests."""
    monkeypatch.delenv("KEYHAUL_PROGRAM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(_program, "PACKAGED", tmp_path / "none")


def test_the_program_is_searched_in_the_documented_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    in_argument, in_variable, in_package, in_search_path = (
        create_executable(tmp_path / folder / "keyhaul") for folder in ("argument", "variable", "package", "path")
    )
    monkeypatch.setenv("PATH", str(in_search_path.parent))
    assert keyhaul.find_program() == str(in_search_path)
    monkeypatch.setattr(_program, "PACKAGED", in_package)
    assert keyhaul.find_program() == str(in_package)
    monkeypatch.setenv("KEYHAUL_PROGRAM", str(in_variable))
    assert keyhaul.find_program() == str(in_variable)
    assert keyhaul.find_program(in_argument) == str(in_argument)


def test_a_named_program_that_is_missing_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv("PATH", str(create_executable(tmp_path / "path" / "keyhaul").parent))
    monkeypatch.setenv("KEYHAUL_PROGRAM", str(tmp_path / "gone"))
    with pytest.raises(keyhaul.ProgramNotFound, match="gone cannot be run: it is the value of KEYHAUL_PROGRAM"):
        keyhaul.find_program()


def test_the_error_without_a_program_names_the_variable_to_set() -> None:
    with pytest.raises(keyhaul.ProgramNotFound) as caught:
        keyhaul.find_program()
    assert (caught.value.code, caught.value.id) == (127, "program-not-found")
    assert "KEYHAUL_PROGRAM" in (caught.value.advice or "")


def test_the_command_of_the_package_is_not_used_as_the_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    script = create_executable(tmp_path / "script" / "keyhaul", "#!/bin/sh\n")
    program = create_executable(tmp_path / "program" / "keyhaul")
    monkeypatch.setenv("PATH", os.pathsep.join([str(script.parent), str(program.parent)]))
    assert keyhaul.find_program() == str(program)


def test_the_command_runs_the_program_with_its_arguments(tmp_path: pathlib.Path) -> None:
    program = create_executable(tmp_path / "keyhaul", '#!/bin/sh\necho "$@"; exit 7\n')
    completed = subprocess.run(
        [sys.executable, "-m", "keyhaul", "verify", "a b"],
        env={"PATH": "/usr/bin:/bin", "KEYHAUL_PROGRAM": str(program)},
        stdout=subprocess.PIPE,
        check=False,
    )
    assert (completed.returncode, completed.stdout) == (7, b"verify a b\n")


def test_the_package_has_the_version_of_the_program() -> None:
    source = (ROOT / "Sources/CommandLine/keyhaul/Output/ProgramVersion.swift").read_text(encoding="utf-8")
    match = re.search(r'static let number = "([^"]+)"', source)
    assert match and keyhaul.__version__ == match[1]
