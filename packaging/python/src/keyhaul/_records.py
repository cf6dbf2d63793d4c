"""Decode JSON objects into frozen data classes.

`raw` has all members, including unknown ones. A missing member gets the default of its field. A member of the wrong
type is an error in the program's output, not in the caller.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import re
import types
import typing
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T", bound="Record")

DATE_PATTERN = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6})\d*)?Z")


class DecodingError(ValueError):
    """The document does not conform to the format that it states."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """A part of a document. `raw` contains all of it, as printed. Comparisons ignore `raw`."""

    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


def decode(record_type: type[T], value: object, location: str = "the document") -> T:
    """Return the record for a JSON object."""
    if not isinstance(value, dict):
        raise DecodingError(f"{location} is not an object")
    members: dict[str, Any] = {"raw": value}
    # mypy does not know that the class of a type variable is hashable, as the cache requires.
    for name, member, hint, required in _fields(typing.cast(Hashable, record_type)):
        if member in value:
            members[name] = _decode_value(hint, value[member], f"{location}: {member}")
        elif required:
            raise DecodingError(f"{location} has no {member}")
    return record_type(**members)


@functools.cache
def _fields(record_type: type[Record]) -> list[tuple[str, str, Any, bool]]:
    """Return the name, member name and type of each field, and whether it is required."""
    hints = typing.get_type_hints(record_type)
    return [
        (
            element.name,
            element.metadata.get("member", element.name),
            hints[element.name],
            element.default is dataclasses.MISSING and element.default_factory is dataclasses.MISSING,
        )
        for element in dataclasses.fields(record_type)
        if element.name != "raw"
    ]


def _decode_value(hint: Any, value: object, location: str) -> Any:
    """Return a JSON value as the type of its field."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return None if value is None else _decode_value(arguments[0], value, location)
    if origin is tuple:
        if not isinstance(value, list):
            raise DecodingError(f"{location} is not a list")
        return tuple(
            _decode_value(arguments[0], element, f"{location}[{index}]") for index, element in enumerate(value)
        )
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, dict):
            raise DecodingError(f"{location} is not an object")
        return {key: _decode_value(arguments[1], element, f"{location}: {key}") for key, element in value.items()}
    if hint is datetime.datetime:
        return _decode_date(value, location)
    if issubclass(hint, Record):
        return decode(hint, value, location)
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise DecodingError(f"{location} is not of type {hint.__name__}")
    return value


def _decode_date(value: object, location: str) -> datetime.datetime:
    """Decode an RFC 3339 time in UTC. Decimals of a second after the sixth are only in `raw`."""
    match = DATE_PATTERN.fullmatch(value) if isinstance(value, str) else None
    try:
        if match:
            fraction = int((match[2] or "").ljust(6, "0"))
            date = datetime.datetime.fromisoformat(match[1])
            return date.replace(microsecond=fraction, tzinfo=datetime.timezone.utc)
    except ValueError:
        pass
    raise DecodingError(f"{location} is not a time")
