"""Test the sources of a password, and that the password never leaves them."""

from __future__ import annotations

import copy
import json
import os
import pathlib
import pickle
import shutil

import cloudpickle
import pytest
from conftest import SECRET, Sample

import keyhaul


def test_a_password_cannot_be_pickled_copied_or_printed() -> None:
    password = keyhaul.Password(SECRET)
    for attempt in (pickle.dumps, cloudpickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="not sent or stored"):
            attempt(password)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError):
            pickle.dumps([password], protocol)
    assert SECRET not in repr(password) and SECRET not in f"{password}" and not hasattr(password, "__dict__")


def test_a_password_source_can_be_pickled() -> None:
    for source in (keyhaul.PasswordFile("p"), keyhaul.PasswordCommand("c"), keyhaul.PasswordName("n")):
        assert pickle.loads(pickle.dumps(source)) == source


def test_a_plain_string_is_not_accepted_as_a_password(sample: Sample) -> None:
    with pytest.raises(TypeError) as caught:
        keyhaul.verify(sample.file, password=SECRET)  # type: ignore[arg-type]
    assert SECRET not in str(caught.value)


def test_a_password_name_is_resolved_on_the_worker(
    sample: Sample, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passwords_file = tmp_path / "passwords.json"
    sources = {"family": {"file": sample.password.path}, "shell": {"command": f"cat {sample.password.path}"}}
    passwords_file.write_text(json.dumps(sources))
    monkeypatch.setenv("KEYHAUL_PASSWORDS", str(passwords_file))
    for name in sources:
        assert keyhaul.verify(sample.file, password=keyhaul.PasswordName(name)).whole


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{}", "no such name"),
        ('{"family": "' + SECRET + '"}', "neither"),
        ('{"family": {"password": "' + SECRET + '"}}', "neither"),
        ('{"family": {"file": "f", "command": "c"}}', "neither"),
        ("[" + SECRET, "cannot be read: JSONDecodeError"),
        (None, "cannot be read: FileNotFoundError"),
    ],
)
def test_the_error_for_an_unknown_name_contains_no_secret(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, content: str | None, reason: str
) -> None:
    passwords_file = tmp_path / "passwords.json"
    if content is not None:
        passwords_file.write_text(content)
    monkeypatch.setenv("KEYHAUL_PASSWORDS", str(passwords_file))
    with pytest.raises(keyhaul.KeyhaulError, match=reason) as caught:
        keyhaul.PasswordName("family").resolve()
    assert caught.value.code == 12 and SECRET not in str(caught.value)
    monkeypatch.delenv("KEYHAUL_PASSWORDS")
    with pytest.raises(keyhaul.KeyhaulError, match="not set"):
        keyhaul.PasswordName("family").resolve()


@pytest.mark.parametrize("name", ["--help", "-", "-p", "--password-file=x", "--"])
def test_a_value_that_looks_like_an_option_is_used_as_a_value(
    sample: Sample, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(sample.password.path, name)
    os.chmod(name, 0o600)
    assert keyhaul.verify(sample.file, password=keyhaul.PasswordFile(name)).whole
    shutil.copyfile(sample.file, name)
    assert keyhaul.verify(name, password=sample.password).whole
    shutil.copytree(sample.home, f"{name}home")
    assert keyhaul.plan(sample.file, password=sample.password, to="new-phone", home=f"{name}home").raw
    for call in ({"device_key": name}, {"to": name}, {"password": keyhaul.PasswordCommand(name)}):
        with pytest.raises(keyhaul.KeyhaulError) as caught:
            keyhaul.plan(sample.file, **{"password": sample.password, **call})  # type: ignore[arg-type]
        # If the value were parsed as an option, the program would exit with 0 or 64 without a result.
        assert caught.value.raw, call
