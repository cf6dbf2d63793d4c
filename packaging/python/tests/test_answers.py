"""What the program says, as values."""

from __future__ import annotations

import json
import pathlib
import tarfile
import typing
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from datetime import timezone
from typing import Any

import pytest
from conftest import SECRET, Sample, script

import keyhaul
from keyhaul import results
from keyhaul._records import NotUnderstood, Record, decode

SCHEMAS = pathlib.Path(__file__).resolve().parents[3] / "docs/schemas"


def test_a_whole_backup_is_verified(sample: Sample) -> None:
    answer = keyhaul.verify(sample.file, password=sample.password)
    assert (answer.code, answer.error, answer.whole, answer.verdict) == (0, None, True, "whole")
    assert answer.items == results.ItemCounts(readable=14, device_bound=4, damaged=0)
    assert all(check.ok for check in answer.checks)


def test_of_a_backup_is_told_what_needs_no_password(sample: Sample) -> None:
    answer = keyhaul.inspect(sample.folder)
    assert (answer.device.name, answer.device.product_type, answer.encrypted) == ("old-phone", "iPhone15,2", True)
    assert answer.made is not None and answer.made.tzinfo is timezone.utc
    assert answer.keybag.rounds == (1, 10000) and answer.keychain.items is None and answer.items is None


def test_with_the_password_the_items_are_listed(sample: Sample) -> None:
    answer = keyhaul.inspect(sample.file, password=keyhaul.Password(SECRET), items=True)
    assert answer.items is not None and len(answer.items) == 18
    assert {item.reason for item in answer.items if not item.readable} == {"device-bound"}


def test_two_futures_are_planned(sample: Sample) -> None:
    answer = keyhaul.plan(sample.file, password=sample.password)
    assert isinstance(answer, results.Futures)
    assert [(future.future, future.arrives) for future in answer.futures] == [
        ("new-device", 14),
        ("same-device-erased", 14),
    ]
    assert sum(item.outcomes[0].outcome == "migrates" for item in answer.items) == 14


def test_one_restore_is_planned(sample: Sample) -> None:
    answer = keyhaul.plan(sample.file, password=sample.password, to="new-phone", home=sample.home)
    assert isinstance(answer, results.MigrationPlan)
    assert (answer.target.name, answer.summary.migrates, answer.summary.by_reason) == (
        "new-phone",
        14,
        {"device-bound": 4},
    )


def test_a_damaged_backup_is_an_answer(sample: Sample, tmp_path: pathlib.Path) -> None:
    damaged = tmp_path / "damaged"
    with tarfile.open(sample.file) as archive:
        archive.extractall(damaged, filter="data")
    payload = next(path for path in damaged.rglob("*") if len(path.name) == 40)
    content = bytearray(payload.read_bytes())
    content[len(content) // 2] ^= 1
    payload.write_bytes(content)
    answer = keyhaul.verify(next(damaged.rglob("Manifest.plist")).parent, password=sample.password)
    assert (answer.code, answer.whole, answer.error and answer.error.id) == (13, False, "damaged")
    assert answer.faults and answer.fault_count >= 1


def test_what_the_program_refuses_is_raised_with_its_words(sample: Sample) -> None:
    with pytest.raises(keyhaul.KeyhaulError) as caught:
        keyhaul.verify(sample.file, password=keyhaul.Password("wrong"))
    error = caught.value
    assert (error.code, error.id) == (12, "wrong-password")
    assert error.message.endswith("the password is wrong") and error.why and error.advice
    with pytest.raises(keyhaul.KeyhaulError, match="does not exist") as caught:
        keyhaul.plan("/nowhere.tar")
    assert caught.value.code == 10


def test_a_path_is_never_a_flag(sample: Sample, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("--help", "-"):
        pathlib.Path(name).write_bytes(pathlib.Path(sample.file).read_bytes())
        assert keyhaul.verify(name, password=sample.password).whole


def test_the_version_is_asked_of_the_program(program: str) -> None:
    assert keyhaul.version(program).split()[0] == keyhaul.__version__


# Answers that a program of ours does not give.

WHOLE: dict[str, Any] = {"format": "backup-verification/1", "checks": [], "items": None, "whole": True}


def answering(tmp_path: pathlib.Path, code: int, out: object, err: str = "") -> str:
    text = out if isinstance(out, str) else json.dumps(out)
    return script(
        tmp_path / "program",
        f"import sys\nsys.stdout.write({text!r}); sys.stderr.write({err!r})\nsys.exit({code})\n",
    )


@pytest.mark.parametrize("code", [1, 4, 5, 6, 15, 17, 64, 99, 200])
def test_a_code_that_is_no_answers_is_a_failure_whatever_is_printed(tmp_path: pathlib.Path, code: int) -> None:
    with pytest.raises(keyhaul.KeyhaulError) as caught:
        keyhaul.verify("x", program=answering(tmp_path, code, WHOLE, "{}\nno JSON\n"))
    assert caught.value.code == code


@pytest.mark.parametrize(
    "out", ["", "nothing", "[]", "{}", '{"format": "backup-inspection/1"}', "[" * 100_000, {**WHOLE, "whole": 1}]
)
def test_what_is_not_understood_is_a_failure(tmp_path: pathlib.Path, out: object) -> None:
    with pytest.raises(keyhaul.KeyhaulError) as caught:
        keyhaul.verify("x", program=answering(tmp_path, 0, out))
    assert caught.value.code == 1


def test_a_member_that_is_not_known_is_kept(tmp_path: pathlib.Path) -> None:
    out = {**WHOLE, "checks": [{"id": "new", "ok": True, "detail": "d", "since": 2}], "later": {"a": 1}}
    answer = keyhaul.verify("x", program=answering(tmp_path, 0, out))
    assert answer.raw["later"] == {"a": 1} and answer.checks[0].raw["since"] == 2


def test_a_hostile_name_stays_a_text(tmp_path: pathlib.Path) -> None:
    name = '\u001b[2J\u202e"; rm -rf /\u0000</script>\ud800'
    out = {**WHOLE, "archive": name}
    assert keyhaul.verify("x", program=answering(tmp_path, 0, json.dumps(out))).archive == name


def test_a_signal_is_told_by_its_number(tmp_path: pathlib.Path) -> None:
    killed = script(tmp_path / "program", "import os\nos.kill(os.getpid(), 9)\n")
    with pytest.raises(keyhaul.KeyhaulError) as caught:
        keyhaul.verify("x", program=killed)
    assert (caught.value.code, caught.value.id) == (137, "signal")


# The schemas.

TOPS: dict[type[Record], str] = {
    results.Inspection: "backup-inspection-1",
    results.Verification: "backup-verification-1",
    results.Futures: "migration-futures-1",
    results.MigrationPlan: "migration-plan-1",
}


@dataclass(frozen=True)
class Schema:
    """A part of a schema, and the document that its references are relative to."""

    part: dict[str, Any]
    document: str

    def followed(self) -> Schema:
        if "$ref" not in self.part:
            return self
        file, _, pointer = self.part["$ref"].partition("#")
        document = file or self.document
        part = json.loads((SCHEMAS / document).read_text(encoding="utf-8"))
        for step in filter(None, pointer.split("/")):
            part = part[step]
        return Schema(part, document).followed()

    def parts(self, *names: str) -> list[Schema]:
        """What it is made of, or may be instead; null aside."""
        listed = [part for name in names for part in self.part.get(name, ()) if part.get("type") != "null"]
        return [Schema(part, self.document).followed() for part in listed]

    def members(self) -> dict[str, Schema]:
        found: dict[str, Schema] = {}
        for part in self.parts("allOf", "oneOf"):
            found |= part.members()
        # `true` lets a member through that stands in another part.
        own = {name: part for name, part in self.part.get("properties", {}).items() if part is not True}
        return found | {name: Schema(part, self.document).followed() for name, part in own.items()}

    def required(self) -> set[str]:
        alternatives = [part.required() for part in self.parts("oneOf")]
        common = set.intersection(*alternatives) if alternatives else set()
        return common.union(self.part.get("required", ()), *(part.required() for part in self.parts("allOf")))

    def elements(self) -> Schema:
        return Schema(self.part["items"], self.document).followed() if "items" in self.part else self


def records(hint: Any) -> Iterator[type[Record]]:
    """The records that a field's type speaks of."""
    if isinstance(hint, type) and issubclass(hint, Record):
        yield hint
    for part in typing.get_args(hint):
        yield from records(part)


def check(kind: type[Record], schema: Schema) -> int:
    found, required, count = schema.members(), schema.required(), 0
    hints = typing.get_type_hints(kind)
    for each in fields(kind):
        if each.name == "raw" or (issubclass(kind, results.Answer) and each.name in ("code", "error", "seconds")):
            continue
        member = each.metadata.get("member", each.name)
        assert member in found, f"{kind.__name__}: the schema has no {member}"
        if each.default is MISSING and each.default_factory is MISSING:
            assert member in required, f"{kind.__name__}: the schema does not ask for {member}"
        count += 1 + sum(check(inner, found[member].elements()) for inner in records(hints[each.name]))
    return count


@pytest.mark.parametrize(("kind", "name"), TOPS.items(), ids=TOPS.values())
def test_each_field_is_a_member_of_its_schema(kind: type[Record], name: str) -> None:
    assert check(kind, Schema({"$ref": f"{name}.schema.json"}, "").followed()) > 30


def test_a_moment_is_read_to_the_microsecond() -> None:
    source = {"kind": "archive", "name": "n", "encrypted": True, "digest": "d", "made": "2026-11-24T22:12:37.4704249Z"}
    made = decode(results.Source, source).made
    assert made is not None and made.isoformat() == "2026-11-24T22:12:37.470424+00:00"
    for wrong in ("2026-13-01T00:00:00Z", "2026-11-24", 7, "2026-11-24T22:12:37+01:00"):
        with pytest.raises(NotUnderstood):
            decode(results.Source, {**source, "made": wrong})
