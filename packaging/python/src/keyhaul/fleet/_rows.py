"""Make table rows from the program's results."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from .._errors import KeyhaulError, id_of_code
from ..results import Inspection, MigrationPlan, Plan, Verification
from ._tables import NAMES, items_schema, table


def result_columns(answer: Inspection | Verification | Plan) -> dict[str, Any]:
    """Return the columns that a result fills."""
    if isinstance(answer, Inspection):
        return {
            "encrypted": answer.encrypted,
            "made": answer.made,
            "device_udid": answer.device.udid,
            "device_name": answer.device.name,
            "product_type": answer.device.product_type,
            "product_version": answer.device.product_version,
            "build_version": answer.device.build_version,
            "serial_number": answer.device.serial_number,
            "files": answer.files,
            "bytes": answer.bytes,
        }
    if isinstance(answer, Verification):
        first = answer.faults[0] if answer.faults else None
        location = f"{first.file}: " if first and first.file else ""
        return {
            "verdict": answer.verdict,
            "whole": answer.whole,
            "seal": answer.seal,
            "faults": answer.fault_count,
            "fault": f"{location}{first.id}: {first.detail}" if first else None,
            "items_readable": answer.items and answer.items.readable,
            "items_device_bound": answer.items and answer.items.device_bound,
            "items_damaged": answer.items and answer.items.damaged,
        }
    source = answer.source
    found: dict[str, Any] = {
        "digest": source.digest,
        "encrypted": source.encrypted,
        "made": source.made,
        "device_udid": source.device,
        "device_name": source.device_name,
        "items": len(answer.items),
    }
    if isinstance(answer, MigrationPlan):
        return found | {"arrives_new_device": answer.summary.migrates}
    for future in answer.futures:
        found["arrives_same_device" if future.same_device else "arrives_new_device"] = future.arrives
        if future.same_device:
            found["expected_same_device"] = future.expected
    return found


def items(answer: Plan, path: str, current_stamp: str | None, names: bool) -> pa.Table:
    """Return the rows of a plan's items."""
    rows: list[dict[str, Any]] = []
    for item in answer.items:
        row = {
            "path": path,
            "stamp": current_stamp,
            "index": item.index,
            "kind": item.kind,
            "protection": item.protection,
        }
        if names:
            row |= {name: getattr(item, name) for name in NAMES}
        if isinstance(answer, MigrationPlan):
            row |= {name: getattr(item, name) for name in ("outcome", "reason", "change", "warning")}
        else:
            for prospect in getattr(item, "outcomes", ()):
                suffix = "_same_device" if prospect.same_device else ""
                outcome = "expected" if prospect.expected else prospect.outcome
                row |= {f"outcome{suffix}": outcome, f"reason{suffix}": prospect.reason}
                if not prospect.same_device:
                    row["warning"] = prospect.warning
        rows.append(row)
    return table(rows, items_schema(names))


def error_columns(error: KeyhaulError) -> dict[str, Any]:
    """Return the columns that an error fills."""
    return {
        "code": error.code,
        "id": error.id,
        "error": error.message,
        "why": error.why,
        "advice": error.advice,
    }


def partial_columns(answer: Inspection | Verification | Plan) -> dict[str, Any]:
    """Return the columns for a result without an error. If it is incomplete, they have the first missing part."""
    if answer.code == 0:
        return {"code": 0, "id": "ok"}
    details = [fault.detail for fault in getattr(answer, "faults", ())]
    details += [str(finding.get("detail")) for finding in answer.raw.get("findings") or () if isinstance(finding, dict)]
    return {
        "code": answer.code,
        "id": id_of_code(answer.code),
        "error": "done, but something is damaged or missing",
        "why": details[0] if details else None,
    }
