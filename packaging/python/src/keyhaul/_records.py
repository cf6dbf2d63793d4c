"""Decodes JSON objects into frozen data classes.

`raw` keeps all members, unknown ones too. A missing member gets its field's default. A member of the wrong type is an error
in the program's output, never in the caller.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T", bound="Record")

MOMENT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6})\d*)?Z")


class NotUnderstood(ValueError):
    """The document does not have the format that it states."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """A part of a document. `raw` contains all of it, as printed; comparisons ignore it."""

    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


def decode(kind: type[T], value: object, place: str = "the document") -> T:
    """Returns a record for a JSON object."""
    if not isinstance(value, dict):
        raise NotUnderstood(f"{place} is not an object")
    members: dict[str, Any] = {"raw": value}
    known: Any = kind
    for name, member, hint, required in _fields(known):
        if member in value:
            members[name] = _decoded(hint, value[member], f"{place}: {member}")
        elif required:
            raise NotUnderstood(f"{place} has no {member}")
    return kind(**members)


@functools.cache
def _fields(kind: Any) -> list[tuple[str, str, Any, bool]]:
    """Returns each field's name, its member's name, its type, and whether it is required."""
    hints = typing.get_type_hints(kind)
    return [
        (
            each.name,
            each.metadata.get("member", each.name),
            hints[each.name],
            each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING,
        )
        for each in dataclasses.fields(kind)
        if each.name != "raw"
    ]


def _decoded(hint: Any, value: object, place: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return None if value is None else _decoded(arguments[0], value, place)
    if origin is tuple:
        if not isinstance(value, list):
            raise NotUnderstood(f"{place} is not a list")
        return tuple(_decoded(arguments[0], each, f"{place}[{index}]") for index, each in enumerate(value))
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, dict):
            raise NotUnderstood(f"{place} is not an object")
        return {key: _decoded(arguments[1], each, f"{place}: {key}") for key, each in value.items()}
    if hint is datetime.datetime:
        return _moment(value, place)
    if issubclass(hint, Record):
        return decode(hint, value, place)
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise NotUnderstood(f"{place} is not of type {hint.__name__}")
    return value


def _moment(value: object, place: str) -> datetime.datetime:
    """Decodes an RFC 3339 time in UTC. Only `raw` has more than six decimals of a second."""
    found = MOMENT.fullmatch(value) if isinstance(value, str) else None
    try:
        if found:
            fraction = int((found[2] or "").ljust(6, "0"))
            moment = datetime.datetime.fromisoformat(found[1])
            return moment.replace(microsecond=fraction, tzinfo=datetime.timezone.utc)
    except ValueError:
        pass
    raise NotUnderstood(f"{place} is not a time")
