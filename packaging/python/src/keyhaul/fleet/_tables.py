"""The columns of the two tables, and functions that read and write them."""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

FORMAT = "keyhaul-fleet/1"

_TIME = pa.timestamp("us", tz="UTC")

# One row for each backup. Columns of commands that were not run are null.
BACKUPS = pa.schema(
    [
        ("path", pa.string()),
        ("stamp", pa.string()),
        ("asked", pa.string()),
        ("password_mark", pa.string()),
        ("digest", pa.string()),
        ("code", pa.int32()),
        ("id", pa.string()),
        ("error", pa.string()),
        ("why", pa.string()),
        ("advice", pa.string()),
        ("verdict", pa.string()),
        ("whole", pa.bool_()),
        ("seal", pa.string()),
        ("faults", pa.int64()),
        ("fault", pa.string()),
        ("encrypted", pa.bool_()),
        ("made", _TIME),
        ("device_udid", pa.string()),
        ("device_name", pa.string()),
        ("product_type", pa.string()),
        ("product_version", pa.string()),
        ("build_version", pa.string()),
        ("serial_number", pa.string()),
        ("files", pa.int64()),
        ("bytes", pa.int64()),
        ("items", pa.int64()),
        ("items_readable", pa.int64()),
        ("items_device_bound", pa.int64()),
        ("items_damaged", pa.int64()),
        ("arrives_new_device", pa.int64()),
        ("arrives_same_device", pa.int64()),
        ("expected_same_device", pa.int64()),
        ("worker", pa.string()),
        ("finished", _TIME),
        ("seconds", pa.float64()),
    ]
)

# One row for each item. `outcome` and `reason` are for a new device, or for the device in `to`. On the same device, an
# item is `expected` if its class allows it and the key to check it is not available.
ITEMS = pa.schema(
    [
        ("path", pa.string()),
        ("stamp", pa.string()),
        ("index", pa.int64()),
        ("kind", pa.string()),
        ("protection", pa.string()),
        ("outcome", pa.string()),
        ("reason", pa.string()),
        ("change", pa.string()),
        ("warning", pa.string()),
        ("outcome_same_device", pa.string()),
        ("reason_same_device", pa.string()),
    ]
)

# Item columns only with `names=True`, because account names are private and tables are shared more widely than backups.
NAMES = ("label", "account", "service", "server", "access_group")


def items_schema(names: bool) -> pa.Schema:
    """Return the columns of the items."""
    return pa.schema([*ITEMS, *(pa.field(name, pa.string()) for name in NAMES)]) if names else ITEMS


def escape(value: Any) -> Any:
    """Return a value that Parquet accepts. In text, bytes that are not Unicode are escaped, such as in file names."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8") if isinstance(value, str) else value


def table(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """Return the rows as a table. Missing members are null."""
    return pa.table({name: [escape(row.get(name)) for row in rows] for name in schema.names}, schema=schema)


def read(folder: str | os.PathLike[str], names: bool) -> tuple[pa.Table, pa.Table] | None:
    """Read the tables of a folder. Return None if there are none in this format."""
    try:
        backups, items = (pq.read_table(pathlib.Path(folder, name)) for name in ("backups.parquet", "items.parquet"))
    except (OSError, pa.ArrowException):
        return None
    has_schema = backups.schema.equals(BACKUPS) and items.schema.equals(items_schema(names))
    has_format = (backups.schema.metadata or {}).get(b"format") == FORMAT.encode()
    return (backups, items) if has_schema and has_format else None


def write(folder: str | os.PathLike[str], backups: pa.Table, items: pa.Table) -> None:
    """Write both tables durably: each is written to a temporary file, synced and renamed."""
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    # Items are written first, so that no backup's row exists without its items.
    for name, content in (("items.parquet", items), ("backups.parquet", backups)):
        _write_atomically(pathlib.Path(folder, name), content.replace_schema_metadata({"format": FORMAT}))


def _write_atomically(target: pathlib.Path, content: pa.Table) -> None:
    """Replace a file only after the new one is complete and on the disk."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        # Other users of the machine must not read the file.
        with open(os.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as file:
            pq.write_table(content, file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
