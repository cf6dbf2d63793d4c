"""Typed values as JSON: as `device-fixture/1` has them (dates marked) and as `keychain-items/1` has them."""

import base64

from . import FormatError
from .apple_der import Moment


def data(value):
    return {"base64": base64.b64encode(value).decode("ascii")}


def marked(value):
    """Bytes as {"base64"}, dates as {"date"}, lists and the rest as they are."""
    if isinstance(value, (bytes, bytearray)):
        return data(bytes(value))
    if isinstance(value, Moment):
        return {"date": value.rfc3339}
    if isinstance(value, (list, tuple)):
        return [marked(member) for member in value]
    if isinstance(value, dict):
        return {"dictionary": {str(key): marked(member) for key, member in value.items()}}
    return value


def plain(value):
    """As `marked`, but a date is only its text."""
    return value.rfc3339 if isinstance(value, Moment) else marked(value)


def parse(value):
    """The value that `marked` wrote."""
    if isinstance(value, dict):
        if set(value) == {"base64"}:
            return base64.b64decode(value["base64"], validate=True)
        if set(value) == {"date"}:
            return Moment.from_rfc3339(value["date"])
        if set(value) == {"text"}:
            return value["text"].encode("utf-8")
        raise FormatError(f"a value has unknown marks: {sorted(value)}")
    return value


def secret(value):
    """{"base64"}, and "text" where the bytes are UTF-8."""
    described = data(value)
    try:
        described["text"] = value.decode("utf-8")
    except UnicodeDecodeError:
        pass
    return described
