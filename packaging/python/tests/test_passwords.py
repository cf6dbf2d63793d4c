"""Where a password comes from, and where it never goes."""

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


def test_a_password_itself_is_not_sent_stored_or_printed() -> None:
    password = keyhaul.Password(SECRET)
    for attempt in (pickle.dumps, cloudpickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="not sent or stored"):
            attempt(password)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError):
            pickle.dumps([password], protocol)
    assert SECRET not in repr(password) and SECRET not in f"{password}" and not hasattr(password, "__dict__")


def test_a_source_can_be_sent() -> None:
    for source in (keyhaul.PasswordFile("p"), keyhaul.PasswordCommand("c"), keyhaul.PasswordName("n")):
        assert pickle.loads(pickle.dumps(source)) == source


def test_a_text_is_no_source(sample: Sample) -> None:
    with pytest.raises(TypeError) as caught:
        keyhaul.verify(sample.file, password=SECRET)  # type: ignore[arg-type]
    assert SECRET not in str(caught.value)


def test_a_name_is_resolved_where_the_backup_is_opened(
    sample: Sample, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "passwords.json"
    listed = {"family": {"file": sample.password.path}, "shell": {"command": f"cat {sample.password.path}"}}
    place.write_text(json.dumps(listed))
    monkeypatch.setenv("KEYHAUL_PASSWORDS", str(place))
    for name in listed:
        assert keyhaul.verify(sample.file, password=keyhaul.PasswordName(name)).whole


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("{}", "no such name"),
        ('{"family": "' + SECRET + '"}', "neither"),
        ('{"family": {"password": "' + SECRET + '"}}', "neither"),
        ('{"family": {"file": "f", "command": "c"}}', "neither"),
        ("[" + SECRET, "cannot be read: JSONDecodeError"),
        (None, "cannot be read: FileNotFoundError"),
    ],
)
def test_a_name_that_is_not_known_says_so_and_quotes_nothing(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, content: str | None, why: str
) -> None:
    place = tmp_path / "passwords.json"
    if content is not None:
        place.write_text(content)
    monkeypatch.setenv("KEYHAUL_PASSWORDS", str(place))
    with pytest.raises(keyhaul.KeyhaulError, match=why) as caught:
        keyhaul.PasswordName("family").resolve()
    assert caught.value.code == 12 and SECRET not in str(caught.value)
    monkeypatch.delenv("KEYHAUL_PASSWORDS")
    with pytest.raises(keyhaul.KeyhaulError, match="not set"):
        keyhaul.PasswordName("family").resolve()


@pytest.mark.parametrize("name", ["--help", "-", "-p", "--password-file=x", "--"])
def test_a_value_that_looks_like_an_option_is_a_value(
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
        # An option of this name would end with 0 or 64 and no answer.
        assert caught.value.raw, call
