"""JSON objects as frozen values, by the types of their fields.

A member that no field names is kept in `raw`, with all others; one that is missing is its field's default. A member of
another type than its field's is an error of the answer, never of the caller.
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
    """A document that is not of the form it says it has."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """Something of a document. `raw` is all of it, as it was printed; of two records it is not compared."""

    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


def decode(kind: type[T], value: object, place: str = "the document") -> T:
    """A record of a JSON object."""
    if not isinstance(value, dict):
        raise NotUnderstood(f"{place} is no object")
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
    """Each field's name, its member's name, its type, and whether it has to be there."""
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
            raise NotUnderstood(f"{place} is no list")
        return tuple(_decoded(arguments[0], each, f"{place}[{index}]") for index, each in enumerate(value))
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, dict):
            raise NotUnderstood(f"{place} is no object")
        return {key: _decoded(arguments[1], each, f"{place}: {key}") for key, each in value.items()}
    if hint is datetime.datetime:
        return _moment(value, place)
    if issubclass(hint, Record):
        return decode(hint, value, place)
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise NotUnderstood(f"{place} is no {hint.__name__}")
    return value


def _moment(value: object, place: str) -> datetime.datetime:
    """RFC 3339 in UTC, as every report writes it; what is finer than a microsecond is in `raw` alone."""
    found = MOMENT.fullmatch(value) if isinstance(value, str) else None
    try:
        if found:
            fraction = int((found[2] or "").ljust(6, "0"))
            moment = datetime.datetime.fromisoformat(found[1])
            return moment.replace(microsecond=fraction, tzinfo=datetime.timezone.utc)
    except ValueError:
        pass
    raise NotUnderstood(f"{place} is no moment")
