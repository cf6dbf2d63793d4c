"""Read and write Apple's DER property lists (the plaintext of keychain items) and the dates in them.

Source: Apple's der_plist sources and their regression tests. A dictionary is a DER SET of SEQUENCEs in byte order.
Apple's own set type has the private tag D1. The boolean true is 01. A date's fraction has the shortest digits that give
the same double.
"""

import datetime
import decimal
import math
import re

from . import FormatError

EPOCH = datetime.datetime(2001, 1, 1)
# Tags of DER elements. _SET is the tag of Apple's own set type. Decoding also accepts the tag 70 for bytes.
_BOOLEAN, _INTEGER, _BYTES, _NULL, _UTF8_STRING = 0x01, 0x02, 0x04, 0x05, 0x0C
_NUMERIC_STRING, _UTC_TIME, _GENERALIZED_TIME, _SEQUENCE, _DICTIONARY = 0x12, 0x17, 0x18, 0x30, 0x31
_OTHER_BYTES, _SET = 0x70, 0xD1
_TIME = re.compile(rb"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(?:\.(\d+))?(Z|[+-]\d{4})")
_SHORT_TIME = re.compile(rb"(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)()(Z|[+-]\d{4})")
_RFC3339 = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?Z", re.ASCII)


class Moment:
    """A date as the keychain stores it: a double with the seconds since 2001-01-01T00:00:00Z.

    A decoded date keeps its text, because different digits can encode the same double.
    """

    def __init__(self, seconds, der_text=None):
        self.seconds = float(seconds)
        self._der_text = der_text

    @classmethod
    def from_rfc3339(cls, text):
        """Return the date of a text such as 2026-11-20T17:58:00.5Z."""
        match = _RFC3339.fullmatch(text)
        if not match:
            raise FormatError("a date is not RFC 3339 in UTC")
        fields = [int(field) for field in match.groups()[:6]]
        return cls(_seconds(fields, (match.group(7) or "").encode(), b"Z"))

    @classmethod
    def from_datetime(cls, value):
        return cls((value - EPOCH).total_seconds())

    @property
    def _date_and_fraction(self):
        """The date and time without a fraction, and the digits of the fraction."""
        exact = decimal.Decimal(repr(self.seconds))
        try:
            full_seconds = math.floor(exact)
            date = EPOCH + datetime.timedelta(seconds=full_seconds)
        except (OverflowError, ValueError) as error:
            raise FormatError("a date is not in the years 1 to 9999") from error
        fraction = format(exact - full_seconds, "f").partition(".")[2].rstrip("0")
        return date, fraction

    @property
    def der_text(self):
        if self._der_text is not None:
            return self._der_text
        date, fraction = self._date_and_fraction
        # %Y has fewer than four digits for a year before 1000.
        return f"{date:%Y%m%d%H%M%S}".rjust(14, "0") + (f".{fraction}" if fraction else "") + "Z"

    @property
    def rfc3339(self):
        date, fraction = self._date_and_fraction
        return date.isoformat() + (f".{fraction}" if fraction else "") + "Z"

    def __eq__(self, other):
        return isinstance(other, Moment) and self.seconds == other.seconds

    def __hash__(self):
        return hash(self.seconds)

    def __repr__(self):
        return f"Moment({self.rfc3339})"


class AppleSet(tuple):
    """A set of values. Encoding sorts its members."""


def _seconds(fields, fraction, zone):
    """Return the seconds since 2001 of a date and time with a fraction and a time zone."""
    year, month, day, hour, minute, second = fields
    if second > 61 or hour > 23 or minute > 59:
        raise FormatError("a date has a field out of range")
    try:
        start = datetime.datetime(year, month, day)
    except ValueError as error:
        raise FormatError("a date has a day that does not exist") from error
    seconds = (start - EPOCH).days * 86400 + hour * 3600 + minute * 60 + second
    if zone != b"Z":
        offset = int(zone[1:3]) * 3600 + int(zone[3:5]) * 60
        seconds += offset if zone[:1] == b"-" else -offset
    digits = fraction[:19]
    return seconds + (int(digits) / 10 ** len(digits) if digits else 0.0)


# The date with which Apple replaces a malformed date.
REPAIRED_DATE = Moment.from_rfc3339("2001-03-24T00:00:00Z")


class MalformedDate(FormatError):
    """A text does not match the pattern of a date.

    Apple replaces such a date. A well-formed date that does not exist is an error instead.
    """


def decode_date(body, short=False):
    """Return the date of a GeneralizedTime, or of a UTCTime if `short` is true."""
    match = (_SHORT_TIME if short else _TIME).fullmatch(body)
    if not match or (match.group(7) or b"").endswith(b"0"):
        raise MalformedDate("a date's text is malformed")
    fields = [int(field) for field in match.groups()[:6]]
    if short:
        fields[0] += 1900 if fields[0] >= 50 else 2000
    return Moment(_seconds(fields, match.group(7) or b"", match.group(8)), None if short else body.decode("ascii"))


def _element(tag, body):
    """Return the DER encoding of an element with a short tag."""
    size = len(body)
    if size < 0x80:
        return bytes([tag, size]) + body
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + body


def encode(value):
    """Return the DER encoding of None, bool, int, bytes, str, Moment, list, dict or AppleSet."""
    if value is None:
        return _element(_NULL, b"")
    if isinstance(value, bool):
        return _element(_BOOLEAN, b"\x01" if value else b"\x00")
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise FormatError("an integer needs more than 8 bytes")
        bits = value.bit_length() if value >= 0 else (value + 1).bit_length()
        return _element(_INTEGER, value.to_bytes(bits // 8 + 1, "big", signed=True))
    if isinstance(value, (bytes, bytearray)):
        return _element(_BYTES, bytes(value))
    if isinstance(value, str):
        return _element(_UTF8_STRING, value.encode("utf-8", "surrogatepass"))
    if isinstance(value, Moment):
        return _element(_GENERALIZED_TIME, value.der_text.encode("ascii"))
    if isinstance(value, AppleSet):
        return _element(_SET, b"".join(sorted(encode(member) for member in value)))
    if isinstance(value, list):
        return _element(_SEQUENCE, b"".join(encode(member) for member in value))
    if isinstance(value, dict):
        pairs = [_element(_SEQUENCE, encode(key) + encode(member)) for key, member in value.items()]
        return _element(_DICTIONARY, b"".join(sorted(pairs)))
    raise FormatError(f"a value of type {type(value).__name__} has no DER form")


class _Cursor:
    """A position in DER data, with an end and the number of levels that may still be nested."""

    def __init__(self, data, start, end, depth, repair_dates):
        self.data, self.position, self.end, self.depth, self.repair_dates = data, start, end, depth, repair_dates

    def read_header(self):
        """Read the tag and the length of an element."""
        if self.end - self.position < 2:
            raise FormatError("DER ends inside an element")
        tag, first = self.data[self.position], self.data[self.position + 1]
        self.position += 2
        size = first
        if first >= 0x80:
            count = first & 0x7F
            if not 1 <= count <= 8:
                raise FormatError("DER has a length that is indefinite or needs more than 8 bytes")
            if self.end - self.position < count:
                raise FormatError("DER ends inside an element")
            size = int.from_bytes(self.data[self.position:self.position + count], "big")
            if size < 0x80 or size >> 8 * (count - 1) == 0:
                raise FormatError("DER has a length that is not minimal")
            self.position += count
        if size > self.end - self.position:
            raise FormatError("DER has an element that runs past its end")
        return tag, size

    def read_value(self):
        """Read an element."""
        tag, size = self.read_header()
        start, end = self.position, self.position + size
        body = self.data[start:end]
        self.position = end
        if tag == _NULL and not body:
            return None
        if tag == _BOOLEAN and size == 1:
            return body != b"\x00"
        if tag == _INTEGER and 1 <= size <= 8:
            return int.from_bytes(body, "big", signed=True)
        if tag in (_BYTES, _OTHER_BYTES):
            return body
        if tag in (_UTF8_STRING, _NUMERIC_STRING):
            try:
                return body.decode("utf-8")
            except UnicodeDecodeError as error:
                raise FormatError("DER has a string that is not UTF-8") from error
        if tag in (_UTC_TIME, _GENERALIZED_TIME):
            try:
                return decode_date(body, short=tag == _UTC_TIME)
            except MalformedDate:
                if self.repair_dates:
                    return REPAIRED_DATE
                raise
        if tag == _DICTIONARY:
            return self.nested(start, end).read_pairs()
        if tag == _SEQUENCE:
            return self.nested(start, end).read_elements()
        if tag == _SET:
            return AppleSet(self.nested(start, end).read_elements())
        raise FormatError(f"DER has an element with the unknown tag {tag:02x}")

    def nested(self, start, end):
        """Return a cursor for the contents of an element."""
        if self.depth == 0:
            raise FormatError("DER is nested too deeply")
        return _Cursor(self.data, start, end, self.depth - 1, self.repair_dates)

    def read_elements(self):
        """Read the elements up to the end."""
        members = []
        while self.position < self.end:
            members.append(self.read_value())
        return members

    def read_pairs(self):
        """Read the pairs of a dictionary. If a key occurs twice, its first pair is used."""
        dictionary = {}
        while self.position < self.end:
            tag, size = self.read_header()
            if tag != _SEQUENCE:
                raise FormatError("a DER dictionary has a member that is not a pair")
            pair = self.nested(self.position, self.position + size)
            self.position += size
            key, value = pair.read_value(), pair.read_value()
            if pair.position != pair.end:
                raise FormatError("a DER dictionary has a pair with bytes after its value")
            try:
                dictionary.setdefault(key, value)
            except TypeError as error:
                raise FormatError("a DER dictionary has a key that is or contains a list or a dictionary") from error
        return dictionary


def decode(data, repair_dates=False, max_depth=64):
    """Return the value of one DER element. Bytes after it are an error."""
    cursor = _Cursor(bytes(data), 0, len(data), max_depth, repair_dates)
    value = cursor.read_value()
    if cursor.position != cursor.end:
        raise FormatError("there are bytes after the DER value")
    return value
