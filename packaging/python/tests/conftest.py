"""Test fixtures: two devices and two backups of one of them, which the program creates once for all tests."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from dataclasses import dataclass

import pytest

import keyhaul

SECRET = "correct horse"


@dataclass(frozen=True)
class Sample:
    """A backup as one file and as a folder, its password file, and the folder of devices."""

    file: str
    folder: str
    password: keyhaul.PasswordFile
    home: str


@pytest.fixture(scope="session")
def program() -> str:
    """Return the path of the release program. If there is none, the tests fail; they are never skipped."""
    return keyhaul.find_program(os.environ.get("KEYHAUL_PROGRAM"))


@pytest.fixture(scope="session")
def sample(program: str, tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """Create two devices and two backups of the old phone in a temporary folder."""
    folder = tmp_path_factory.mktemp("sample")
    password = folder / "password"
    password.write_text(SECRET + "\n")
    password.chmod(0o600)
    home = str(folder / "home")

    def run_program(*arguments: str) -> None:
        common = ["--home", home, "--no-input", "--quiet"]
        subprocess.run([program, *arguments, *common], check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    run_program("device", "create", "old-phone", "--from", "old-phone")
    run_program("device", "create", "new-phone", "--from", "new-phone")
    for name in ("family.tar", "family/"):
        run_program("backup", "old-phone", "-o", f"{folder}/{name}", "--rounds", "1", "--password-file", str(password))
    return Sample(str(folder / "family.tar"), str(folder / "family"), keyhaul.PasswordFile(str(password)), home)


@pytest.fixture
def folder(sample: Sample, tmp_path: pathlib.Path) -> pathlib.Path:
    """Create a folder with six backups and a file that is not a backup."""
    backups = tmp_path / "backups"
    backups.mkdir()
    for number in range(5):
        shutil.copyfile(sample.file, backups / f"{number}.tar")
    shutil.copytree(sample.folder, backups / "folder")
    (backups / "none.tar").write_text("nothing")
    (backups / ".hidden").write_text("nothing")
    return backups


def write_script(path: pathlib.Path, text: str) -> str:
    """Write a Python script that replaces the program, and return its path."""
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)
    return str(path)
