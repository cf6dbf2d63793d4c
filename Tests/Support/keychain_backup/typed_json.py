"""Convert attribute values to and from JSON, as in the formats `device-fixture/1` and `keychain-items/1`."""

import base64

from . import FormatError
from .apple_der import Moment


def encode_bytes(value):
    """Return the JSON value {"base64": …} for bytes."""
    return {"base64": base64.b64encode(value).decode("ascii")}


def to_json(value):
    """Return a JSON value that keeps the type: {"base64": …} for bytes and {"date": …} for dates."""
    if isinstance(value, (bytes, bytearray)):
        return encode_bytes(bytes(value))
    if isinstance(value, Moment):
        return {"date": value.rfc3339}
    if isinstance(value, (list, tuple)):
        return [to_json(member) for member in value]
    if isinstance(value, dict):
        return {"dictionary": {str(key): to_json(member) for key, member in value.items()}}
    return value


def to_plain_json(value):
    """Return the same JSON value as `to_json`, except that a date is a string."""
    return value.rfc3339 if isinstance(value, Moment) else to_json(value)


def from_json(value):
    """Return the value that `to_json` encoded. `{"text": …}` stands for UTF-8 bytes."""
    if isinstance(value, dict):
        if set(value) == {"base64"}:
            return base64.b64decode(value["base64"], validate=True)
        if set(value) == {"date"}:
            return Moment.from_rfc3339(value["date"])
        if set(value) == {"text"}:
            return value["text"].encode("utf-8")
        raise FormatError(f"a value has an unknown type: {sorted(value)}")
    return value


def secret_to_json(value):
    """Return the JSON value of a secret: "base64", and also "text" if the bytes are UTF-8."""
    encoded = encode_bytes(value)
    try:
        encoded["text"] = value.decode("utf-8")
    except UnicodeDecodeError:
        pass
    return encoded
