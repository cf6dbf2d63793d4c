"""Test the results that the package decodes from the output of the program."""

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
from conftest import SECRET, Sample, write_script

import keyhaul
from keyhaul import _commands, results
from keyhaul._records import DecodingError, Record, decode

SCHEMAS = pathlib.Path(__file__).resolve().parents[3] / "docs/schemas"


def test_an_intact_backup_passes_verification(sample: Sample) -> None:
    result = keyhaul.verify(sample.file, password=sample.password)
    assert (result.code, result.error, result.whole, result.verdict) == (0, None, True, "whole")
    assert result.items == results.ItemCounts(readable=14, device_bound=4, damaged=0)
    assert all(check.ok for check in result.checks)


def test_inspect_without_a_password_returns_the_device_and_the_keybag(sample: Sample) -> None:
    result = keyhaul.inspect(sample.folder)
    assert (result.device.name, result.device.product_type, result.encrypted) == ("old-phone", "iPhone15,2", True)
    assert result.made is not None and result.made.tzinfo is timezone.utc
    assert result.keybag.rounds == (1, 10000) and result.keychain.items is None and result.items is None


def test_inspect_with_the_password_lists_the_items(sample: Sample) -> None:
    result = keyhaul.inspect(sample.file, password=keyhaul.Password(SECRET), items=True)
    assert result.items is not None and len(result.items) == 18
    assert {item.reason for item in result.items if not item.readable} == {"device-bound"}


def test_plan_without_a_target_covers_a_new_device_and_the_same_device(sample: Sample) -> None:
    result = keyhaul.plan(sample.file, password=sample.password)
    assert isinstance(result, results.Futures)
    assert [(future.future, future.arrives) for future in result.futures] == [
        ("new-device", 14),
        ("same-device-erased", 14),
    ]
    assert sum(item.outcomes[0].outcome == "migrates" for item in result.items) == 14


def test_plan_with_a_target_covers_one_restore(sample: Sample) -> None:
    result = keyhaul.plan(sample.file, password=sample.password, to="new-phone", home=sample.home)
    assert isinstance(result, results.MigrationPlan)
    assert (result.target.name, result.summary.migrates, result.summary.by_reason) == (
        "new-phone",
        14,
        {"device-bound": 4},
    )


def test_a_damaged_backup_returns_a_result_instead_of_an_error(sample: Sample, tmp_path: pathlib.Path) -> None:
    damaged = tmp_path / "damaged"
    with tarfile.open(sample.file) as archive:
        archive.extractall(damaged, filter="data")
    # The name of a file in a backup is a SHA-1 of 40 digits.
    file = next(path for path in damaged.rglob("*") if len(path.name) == 40)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    result = keyhaul.verify(next(damaged.rglob("Manifest.plist")).parent, password=sample.password)
    assert (result.code, result.whole, result.error and result.error.id) == (13, False, "damaged")
    assert result.faults and result.fault_count >= 1


def test_an_error_has_the_code_and_the_message_of_the_program(sample: Sample) -> None:
    with pytest.raises(keyhaul.KeyhaulError) as caught:
        keyhaul.verify(sample.file, password=keyhaul.Password("wrong"))
    error = caught.value
    assert (error.code, error.id) == (12, "wrong-password")
    assert error.message.endswith("the password is wrong") and error.why and error.advice
    with pytest.raises(keyhaul.KeyhaulError, match="does not exist") as caught:
        keyhaul.plan("/nowhere.tar")
    assert caught.value.code == 10


def test_a_path_that_looks_like_an_option_is_used_as_a_path(
    sample: Sample, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("--help", "-"):
        pathlib.Path(name).write_bytes(pathlib.Path(sample.file).read_bytes())
        assert keyhaul.verify(name, password=sample.password).whole


def test_version_returns_the_version_of_the_program(program: str) -> None:
    assert keyhaul.version(program).split()[0] == keyhaul.__version__


# Results that the real program does not return.

WHOLE: dict[str, Any] = {"format": "backup-verification/1", "checks": [], "items": None, "whole": True}


def fake_program(tmp_path: pathlib.Path, code: int, out: object, err: str = "") -> str:
    """Write a program that prints a document or a text, and ends with a code. Return its path."""
    text = out if isinstance(out, str) else json.dumps(out)
    return write_script(
        tmp_path / "program",
        f"import sys\nsys.stdout.write({text!r}); sys.stderr.write({err!r})\nsys.exit({code})\n",
    )


@pytest.mark.parametrize("code", [1, 4, 5, 6, 15, 17, 64, 99, 200])
def test_the_exit_code_of_a_failure_is_an_error_even_with_a_valid_result(tmp_path: pathlib.Path, code: int) -> None:
    with pytest.raises(keyhaul.KeyhaulError) as caught:
        keyhaul.verify("x", program=fake_program(tmp_path, code, WHOLE, "{}\nno JSON\n"))
    assert caught.value.code == code


@pytest.mark.parametrize(
    "out",
    [
        "",
        "nothing",
        "[]",
        "{}",
        '{"format": "backup-inspection/1"}',
        '{"format": []}',
        '{"format": {}}',
        "[" * 100_000,
        {**WHOLE, "whole": 1},
    ],
)
def test_output_that_is_not_a_valid_result_is_an_error(tmp_path: pathlib.Path, out: object) -> None:
    with pytest.raises(keyhaul.KeyhaulError) as caught:
        keyhaul.verify("x", program=fake_program(tmp_path, 0, out))
    assert caught.value.code == 1


@pytest.mark.parametrize("devices", [None, 1, {}, "old-phone"])
def test_a_device_list_without_a_list_of_devices_is_an_error(tmp_path: pathlib.Path, devices: object) -> None:
    # In the schema, `devices` is a list.
    out = {"format": "device-list/1", "devices": devices, "unreadable": []}
    with pytest.raises(keyhaul.KeyhaulError, match="cannot be decoded") as caught:
        _commands.devices(program=fake_program(tmp_path, 0, out))
    assert caught.value.code == 1


def test_an_unknown_member_is_kept_in_raw(tmp_path: pathlib.Path) -> None:
    out = {**WHOLE, "checks": [{"id": "new", "ok": True, "detail": "d", "since": 2}], "later": {"a": 1}}
    result = keyhaul.verify("x", program=fake_program(tmp_path, 0, out))
    assert result.raw["later"] == {"a": 1} and result.checks[0].raw["since"] == 2


def test_a_name_with_control_characters_is_returned_unchanged(tmp_path: pathlib.Path) -> None:
    name = '\u001b[2J\u202e"; rm -rf /\u0000</script>\ud800'
    out = {**WHOLE, "archive": name}
    assert keyhaul.verify("x", program=fake_program(tmp_path, 0, json.dumps(out))).archive == name


def test_a_program_ended_by_a_signal_is_an_error_with_its_number(tmp_path: pathlib.Path) -> None:
    killed = write_script(tmp_path / "program", "import os\nos.kill(os.getpid(), 9)\n")
    with pytest.raises(keyhaul.KeyhaulError) as caught:
        keyhaul.verify("x", program=killed)
    assert (caught.value.code, caught.value.id) == (137, "signal")


# The fields of the results, compared with the JSON Schemas.

SCHEMA_NAMES: dict[type[Record], str] = {
    results.Inspection: "backup-inspection-1",
    results.Verification: "backup-verification-1",
    results.Futures: "migration-futures-1",
    results.MigrationPlan: "migration-plan-1",
}


@dataclass(frozen=True)
class Schema:
    """A part of a schema, and the file that its references are relative to."""

    part: dict[str, Any]
    document: str

    def resolved(self) -> Schema:
        """Return the part that a reference such as `common.schema.json#/$defs/item` refers to, or this part."""
        if "$ref" not in self.part:
            return self
        file, _, pointer = self.part["$ref"].partition("#")
        document = file or self.document
        part = json.loads((SCHEMAS / document).read_text(encoding="utf-8"))
        for step in filter(None, pointer.split("/")):
            part = part[step]
        return Schema(part, document).resolved()

    def components(self, *names: str) -> list[Schema]:
        """Return the alternatives and components of this part, without null."""
        parts = [part for name in names for part in self.part.get(name, ()) if part.get("type") != "null"]
        return [Schema(part, self.document).resolved() for part in parts]

    def properties(self) -> dict[str, Schema]:
        """Return the members that the part or one of its components describes."""
        properties: dict[str, Schema] = {}
        for component in self.components("allOf", "oneOf"):
            properties |= component.properties()
        for name, part in self.part.get("properties", {}).items():
            # `true` means that another part describes the member.
            if part is not True:
                properties[name] = Schema(part, self.document).resolved()
        return properties

    def required(self) -> set[str]:
        """Return the members that every object of this part has, in all of its alternatives."""
        alternatives = [part.required() for part in self.components("oneOf")]
        common = set.intersection(*alternatives) if alternatives else set()
        return common.union(self.part.get("required", ()), *(part.required() for part in self.components("allOf")))

    def elements(self) -> Schema:
        """Return the part for the elements of a list, or this part if it is not a list."""
        return Schema(self.part["items"], self.document).resolved() if "items" in self.part else self


def records(hint: Any) -> Iterator[type[Record]]:
    """Yield the record types that occur in the type of a field."""
    if isinstance(hint, type) and issubclass(hint, Record):
        yield hint
    for part in typing.get_args(hint):
        yield from records(part)


def check_fields(record_type: type[Record], schema: Schema) -> int:
    """Check the fields of a record and of the records in it. Return their number."""
    properties, required, count = schema.properties(), schema.required(), 0
    hints = typing.get_type_hints(record_type)
    for field in fields(record_type):
        # The package adds these fields. They are not in the document.
        if field.name == "raw" or (
            issubclass(record_type, results.Answer) and field.name in ("code", "error", "seconds")
        ):
            continue
        member = field.metadata.get("member", field.name)
        assert member in properties, f"{record_type.__name__}: the schema has no {member}"
        if field.default is MISSING and field.default_factory is MISSING:
            assert member in required, f"{record_type.__name__}: the schema does not require {member}"
        count += 1 + sum(check_fields(inner, properties[member].elements()) for inner in records(hints[field.name]))
    return count


@pytest.mark.parametrize(("record_type", "name"), SCHEMA_NAMES.items(), ids=SCHEMA_NAMES.values())
def test_each_field_is_in_its_schema_and_required_if_it_has_no_default(record_type: type[Record], name: str) -> None:
    assert check_fields(record_type, Schema({"$ref": f"{name}.schema.json"}, "").resolved()) > 30


def test_a_time_is_decoded_to_the_microsecond() -> None:
    source = {"kind": "archive", "name": "n", "encrypted": True, "digest": "d", "made": "2026-11-24T22:12:37.4704249Z"}
    made = decode(results.Source, source).made
    assert made is not None and made.isoformat() == "2026-11-24T22:12:37.470424+00:00"
    for wrong in ("2026-13-01T00:00:00Z", "2026-11-24", 7, "2026-11-24T22:12:37+01:00"):
        with pytest.raises(DecodingError):
            decode(results.Source, {**source, "made": wrong})
