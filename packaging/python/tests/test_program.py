"""Finding the program, and becoming it."""

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


def executable(path: pathlib.Path, text: str = "\x7fELF") -> pathlib.Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.delenv("KEYHAUL_PROGRAM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setattr(_program, "PACKAGED", tmp_path / "none")


def test_each_place_comes_before_the_next(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    argument, named, packaged, found = (executable(tmp_path / name / "keyhaul") for name in "anpf")
    monkeypatch.setenv("PATH", str(found.parent))
    assert keyhaul.find_program() == str(found)
    monkeypatch.setattr(_program, "PACKAGED", packaged)
    assert keyhaul.find_program() == str(packaged)
    monkeypatch.setenv("KEYHAUL_PROGRAM", str(named))
    assert keyhaul.find_program() == str(named)
    assert keyhaul.find_program(argument) == str(argument)


def test_nothing_takes_the_place_of_what_was_named(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setenv("PATH", str(executable(tmp_path / "f" / "keyhaul").parent))
    monkeypatch.setenv("KEYHAUL_PROGRAM", str(tmp_path / "gone"))
    with pytest.raises(keyhaul.ProgramNotFound, match="gone cannot be run: KEYHAUL_PROGRAM names it"):
        keyhaul.find_program()


def test_where_there_is_none_the_error_says_what_to_do() -> None:
    with pytest.raises(keyhaul.ProgramNotFound) as caught:
        keyhaul.find_program()
    assert (caught.value.code, caught.value.id) == (127, "program-not-found")
    assert "KEYHAUL_PROGRAM" in (caught.value.advice or "")


def test_the_packages_own_command_is_not_taken_for_the_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    script = executable(tmp_path / "s" / "keyhaul", "#!/bin/sh\n")
    program = executable(tmp_path / "p" / "keyhaul")
    monkeypatch.setenv("PATH", os.pathsep.join([str(script.parent), str(program.parent)]))
    assert keyhaul.find_program() == str(program)


def test_the_command_becomes_the_program(tmp_path: pathlib.Path) -> None:
    program = executable(tmp_path / "keyhaul", '#!/bin/sh\necho "$@"; exit 7\n')
    done = subprocess.run(
        [sys.executable, "-m", "keyhaul", "verify", "a b"],
        env={"PATH": "/usr/bin:/bin", "KEYHAUL_PROGRAM": str(program)},
        stdout=subprocess.PIPE,
        check=False,
    )
    assert (done.returncode, done.stdout) == (7, b"verify a b\n")


def test_the_version_is_the_programs() -> None:
    file = ROOT / "VERSION"
    source = (ROOT / "Sources/CommandLine/keyhaul/Output/ProgramVersion.swift").read_text(encoding="utf-8")
    number = re.search(r'static let number = "([^"]+)"', source)
    expected = file.read_text(encoding="utf-8").strip() if file.exists() else number and number[1]
    assert keyhaul.__version__ == expected
