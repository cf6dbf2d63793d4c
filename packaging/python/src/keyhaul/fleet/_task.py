"""What a worker does for one backup: nothing here is sent anywhere but its rows."""

from __future__ import annotations

import datetime
import functools
import hashlib
import json
import os
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from .. import _verbs
from .._errors import KeyhaulError, name_of
from .._program import find_program
from ..passwords import Sendable
from ..results import Futures, Inspection, MigrationPlan, Plan, Verification
from ._stamps import stamp
from ._tables import NAMES, items_schema, plain, table

Verb: TypeAlias = Literal["inspect", "verify", "plan"]

# What the other verbs would end with as well.
ENDS_ALL = frozenset({10, 11, 12, 124, 127})


@dataclass(frozen=True)
class Settings:
    """What is asked of every backup."""

    verbs: tuple[Verb, ...]
    names: bool
    program: str | None
    home: str | None
    to: str | None
    device_key: str | None
    timeout: float | None


@dataclass(frozen=True)
class Job:
    """One backup. `known` is the stamp of a row that stands already, and what was asked for it."""

    index: int
    path: str
    password: Sendable | None
    known: tuple[str, str] | None


@dataclass(frozen=True)
class Found:
    """What came out for one backup; `row` is None where the row that is known still holds."""

    index: int
    row: dict[str, Any] | None
    items: pa.Table | None


def examine(jobs: Sequence[Job], settings: Settings) -> list[Found]:
    """One task: a few backups, one after the other. An error is a row, whatever it is."""
    return [_examined(job, settings) for job in jobs]


def examine_alone(job: Job, settings: Settings, mark: str) -> list[Found]:
    """One backup alone. The scheduler knows by the mark, before anything is read, that a worker has begun with it."""
    from distributed import Event

    Event(mark).set()
    return examine([job], settings)


def failed(job: Job, code: int, id: str, error: str, why: str) -> Found:
    """A row of a backup that no worker has an answer for."""
    return Found(job.index, {"path": plain(job.path), "code": code, "id": id, "error": error, "why": plain(why)}, None)


def _examined(job: Job, settings: Settings) -> Found:
    try:
        # Before anything is read: what changes from here on is seen the next time.
        now = stamp(job.path)
        asked = _asked(settings, job.password)
        if now is not None and job.known == (now, asked):
            return Found(job.index, None, None)
        return _looked_at(job, settings, now, asked)
    except KeyhaulError as error:
        return Found(job.index, {"path": plain(job.path), **_ending(error)}, None)
    except Exception as error:  # noqa: BLE001 - one backup's surprise is not another's
        return failed(job, 1, "failed", "the worker could not look at it", f"{type(error).__name__}: {error}")


def _looked_at(job: Job, settings: Settings, now: str | None, asked: str) -> Found:
    started = time.monotonic()
    row: dict[str, Any] = {"path": plain(job.path), "stamp": now, "asked": asked, "code": 0, "id": "ok"}
    items: pa.Table | None = None
    for verb in settings.verbs:
        try:
            answer = _answer(verb, job, settings)
        except KeyhaulError as error:
            ending = _ending(error)
        else:
            row.update({name: value for name, value in _columns(answer).items() if value is not None})
            if isinstance(answer, (Futures, MigrationPlan)):
                items = _items(answer, row["path"], now, settings.names)
            ending = _ending(answer.error) if answer.error else _partial(answer)
        if row["code"] == 0:
            row.update(ending)
        if ending["code"] in ENDS_ALL:
            break
    row["worker"] = _worker()
    row["finished"] = datetime.datetime.now(datetime.timezone.utc)
    row["seconds"] = time.monotonic() - started
    return Found(job.index, row, items)


def _answer(verb: Verb, job: Job, settings: Settings) -> Inspection | Verification | Plan:
    if verb == "inspect":
        # Without the password: what it adds is in the plan, and it would derive the key once more.
        return _verbs.inspect(job.path, home=settings.home, program=settings.program, timeout=settings.timeout)
    if verb == "verify":
        return _verbs.verify(
            job.path,
            password=job.password,
            device_key=settings.device_key,
            home=settings.home,
            program=settings.program,
            timeout=settings.timeout,
        )
    return _verbs.plan(
        job.path,
        password=job.password,
        to=settings.to,
        device_key=settings.device_key,
        home=settings.home,
        program=settings.program,
        timeout=settings.timeout,
    )


def _columns(answer: Inspection | Verification | Plan) -> dict[str, Any]:
    """What one document says of the columns."""
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
        place = f"{first.file}: " if first and first.file else ""
        return {
            "verdict": answer.verdict,
            "whole": answer.whole,
            "faults": answer.fault_count,
            "fault": f"{place}{first.id}: {first.detail}" if first else None,
            "items_readable": answer.items and answer.items.readable,
            "items_device_bound": answer.items and answer.items.device_bound,
            "items_damaged": answer.items and answer.items.damaged,
        }
    source = answer.source
    columns: dict[str, Any] = {
        "digest": source.digest,
        "encrypted": source.encrypted,
        "made": source.made,
        "device_udid": source.device,
        "device_name": source.device_name,
        "items": len(answer.items),
    }
    if isinstance(answer, MigrationPlan):
        return columns | {"arrives_new_device": answer.summary.migrates}
    for future in answer.futures:
        columns["arrives_same_device" if future.same_device else "arrives_new_device"] = future.arrives
        if future.same_device:
            columns["expected_same_device"] = future.expected
    return columns


def _items(answer: Plan, path: str, now: str | None, names: bool) -> pa.Table:
    rows: list[dict[str, Any]] = []
    for item in answer.items:
        row = {"path": path, "stamp": now, "index": item.index, "kind": item.kind, "protection": item.protection}
        if names:
            row |= {name: getattr(item, name) for name in NAMES}
        if isinstance(answer, MigrationPlan):
            row |= {name: getattr(item, name) for name in ("outcome", "reason", "change", "warning")}
        else:
            for prospect in getattr(item, "outcomes", ()):
                end = "_same_device" if prospect.same_device else ""
                outcome = "expected" if prospect.expected else prospect.outcome
                row |= {f"outcome{end}": outcome, f"reason{end}": prospect.reason}
                if not prospect.same_device:
                    row["warning"] = prospect.warning
        rows.append(row)
    return table(rows, items_schema(names))


def _ending(error: KeyhaulError) -> dict[str, Any]:
    return {
        "code": error.code,
        "id": error.id,
        "error": error.message,
        "why": error.why,
        "advice": error.advice,
    }


def _partial(answer: Inspection | Verification | Plan) -> dict[str, Any]:
    """An answer beside which the program has no error: everything is there, or what is not stands in the document."""
    if answer.code == 0:
        return {"code": 0, "id": "ok"}
    details = [fault.detail for fault in getattr(answer, "faults", ())]
    details += [str(finding.get("detail")) for finding in answer.raw.get("findings") or () if isinstance(finding, dict)]
    return {
        "code": answer.code,
        "id": name_of(answer.code),
        "error": "done, but something is damaged or missing",
        "why": details[0] if details else None,
    }


def _asked(settings: Settings, password: Sendable | None) -> str:
    """What a row answers: the question, and the program that was asked."""
    question = {
        "program": _version(find_program(settings.program)),
        "verbs": settings.verbs,
        "names": settings.names,
        "to": settings.to,
        "home": settings.home,
        "device_key": settings.device_key,
        # That it is the same source, without saying which.
        "password": None if password is None else hashlib.sha256(repr(password).encode("utf-8")).hexdigest()[:12],
    }
    return json.dumps(question, sort_keys=True)


@functools.cache
def _version(program: str) -> str:
    """Asked once in a worker's life."""
    return _verbs.version(program)


def _worker() -> str:
    """Which process it was; a worker that starts again is another one."""
    return f"{socket.gethostname()}:{os.getpid()}"
