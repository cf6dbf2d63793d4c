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
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def no_installed_program(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.delenv("KEYHAUL_PROGRAM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(_program, "PACKAGED", tmp_path / "none")


def test_the_program_is_searched_in_the_documented_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    argument, named, packaged, found = (create_executable(tmp_path / name / "keyhaul") for name in "anpf")
    monkeypatch.setenv("PATH", str(found.parent))
    assert keyhaul.find_program() == str(found)
    monkeypatch.setattr(_program, "PACKAGED", packaged)
    assert keyhaul.find_program() == str(packaged)
    monkeypatch.setenv("KEYHAUL_PROGRAM", str(named))
    assert keyhaul.find_program() == str(named)
    assert keyhaul.find_program(argument) == str(argument)


def test_a_named_program_that_is_missing_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv("PATH", str(create_executable(tmp_path / "f" / "keyhaul").parent))
    monkeypatch.setenv("KEYHAUL_PROGRAM", str(tmp_path / "gone"))
    with pytest.raises(keyhaul.ProgramNotFound, match="gone cannot be run: it is the value of KEYHAUL_PROGRAM"):
        keyhaul.find_program()


def test_the_error_without_a_program_says_what_to_do() -> None:
    with pytest.raises(keyhaul.ProgramNotFound) as caught:
        keyhaul.find_program()
    assert (caught.value.code, caught.value.id) == (127, "program-not-found")
    assert "KEYHAUL_PROGRAM" in (caught.value.advice or "")


def test_the_command_of_the_package_is_not_used_as_the_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    script = create_executable(tmp_path / "s" / "keyhaul", "#!/bin/sh\n")
    program = create_executable(tmp_path / "p" / "keyhaul")
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
    file = ROOT / "VERSION"
    source = (ROOT / "Sources/CommandLine/keyhaul/Output/ProgramVersion.swift").read_text(encoding="utf-8")
    number = re.search(r'static let number = "([^"]+)"', source)
    expected = file.read_text(encoding="utf-8").strip() if file.exists() else number and number[1]
    assert keyhaul.__version__ == expected
