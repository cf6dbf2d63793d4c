"""Make table rows from the program's results."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from .._errors import KeyhaulError, id_of_code
from ..results import Inspection, MigrationPlan, Plan, Verification
from ._tables import NAMES, items_schema, table


def result_columns(result: Inspection | Verification | Plan) -> dict[str, Any]:
    """Return the columns that a result fills."""
    if isinstance(result, Inspection):
        return {
            "encrypted": result.encrypted,
            "made": result.made,
            "device_udid": result.device.udid,
            "device_name": result.device.name,
            "product_type": result.device.product_type,
            "product_version": result.device.product_version,
            "build_version": result.device.build_version,
            "serial_number": result.device.serial_number,
            "files": result.files,
            "bytes": result.bytes,
        }
    if isinstance(result, Verification):
        first_fault = result.faults[0] if result.faults else None
        location = f"{first_fault.file}: " if first_fault and first_fault.file else ""
        return {
            "verdict": result.verdict,
            "whole": result.whole,
            "seal": result.seal,
            "faults": result.fault_count,
            "fault": f"{location}{first_fault.id}: {first_fault.detail}" if first_fault else None,
            "items_readable": result.items and result.items.readable,
            "items_device_bound": result.items and result.items.device_bound,
            "items_damaged": result.items and result.items.damaged,
        }
    source = result.source
    columns: dict[str, Any] = {
        "digest": source.digest,
        "encrypted": source.encrypted,
        "made": source.made,
        "device_udid": source.device,
        "device_name": source.device_name,
        "items": len(result.items),
    }
    if isinstance(result, MigrationPlan):
        return columns | {"arrives_new_device": result.summary.migrates}
    # Each future has the counts for one device: a new one, or the same one after an erase.
    for future in result.futures:
        columns["arrives_same_device" if future.same_device else "arrives_new_device"] = future.arrives
        if future.same_device:
            columns["expected_same_device"] = future.expected
    return columns


def items(result: Plan, path: str, current_stamp: str | None, include_names: bool) -> pa.Table:
    """Return the rows of a plan's items."""
    rows: list[dict[str, Any]] = []
    for item in result.items:
        row = {
            "path": path,
            "stamp": current_stamp,
            "index": item.index,
            "kind": item.kind,
            "protection": item.protection,
        }
        if include_names:
            row |= {name: getattr(item, name) for name in NAMES}
        if isinstance(result, MigrationPlan):
            row |= {name: getattr(item, name) for name in ("outcome", "reason", "change", "warning")}
        else:
            # Each prospect is the item's outcome on one of these devices.
            for prospect in getattr(item, "outcomes", ()):
                suffix = "_same_device" if prospect.same_device else ""
                outcome = "expected" if prospect.expected else prospect.outcome
                row |= {f"outcome{suffix}": outcome, f"reason{suffix}": prospect.reason}
                if not prospect.same_device:
                    row["warning"] = prospect.warning
        rows.append(row)
    return table(rows, items_schema(include_names))


def error_columns(error: KeyhaulError) -> dict[str, Any]:
    """Return the columns that an error fills."""
    return {
        "code": error.code,
        "id": error.id,
        "error": error.message,
        "why": error.why,
        "advice": error.advice,
    }


def status_columns(result: Inspection | Verification | Plan) -> dict[str, Any]:
    """Return the status columns of a command that finished: "ok", or the code and the first fault or finding."""
    if result.code == 0:
        return {"code": 0, "id": "ok"}
    details = [fault.detail for fault in getattr(result, "faults", ())]
    details += [str(finding.get("detail")) for finding in result.raw.get("findings") or () if isinstance(finding, dict)]
    return {
        "code": result.code,
        "id": id_of_code(result.code),
        "error": "done, but something is damaged or missing",
        "why": details[0] if details else None,
    }
