"""What the program answers, as values: docs/schemas, field by field.

Texts that name what is in a backup come from the backup; whoever made it chose them. A field of a kind that grows (a reason,
a fault's id) is a text and not an enumeration: a newer program may say what this package does not know.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ._errors import KeyhaulError
from ._records import Record


@dataclass(frozen=True, kw_only=True)
class Finding(Record):
    """What no device writes, and what was gone around to show the rest."""

    id: str
    detail: str
    place: str | None = None
    lost: bool | None = None
    restorable: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Identity(Record):
    """What an item is called; None where it does not say, or is sealed."""

    kind: str
    label: str | None = None
    account: str | None = None
    service: str | None = None
    server: str | None = None
    access_group: str | None = None


@dataclass(frozen=True, kw_only=True)
class Answer(Record):
    """A document. `code` is the exit code; `error` what the program said where that is not 0, 2 or 3."""

    format: str
    code: int = 0
    error: KeyhaulError | None = None
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Device(Record):
    """The device that made a backup."""

    udid: str | None
    name: str | None
    product_type: str | None
    product_version: str | None
    model_name: str | None = None
    build_version: str | None = None
    serial_number: str | None = None


@dataclass(frozen=True, kw_only=True)
class ClassKey(Record):
    """A key of the keybag: its class with the generation in the upper bits, and what it is wrapped with (1 device, 2 password)."""

    number: int | None = field(metadata={"member": "class"})
    wrap: int | None
    key_type: int
    protection: str | None = None
    generation: int | None = None


@dataclass(frozen=True, kw_only=True)
class Keybag(Record):
    """The keys of a backup, and the rounds of derivation that its password takes."""

    version: int | None
    type: int | None
    uuid: str | None
    rounds: tuple[int, ...]
    classes: tuple[ClassKey, ...]
    unlock_seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class SealedItems(Record):
    """Items that do not open, counted."""

    kind: str
    protection: str | None
    reason: str
    count: int


@dataclass(frozen=True, kw_only=True)
class Keychain(Record):
    """The keychain in a backup, counted; None is what needs the password."""

    present: bool
    items: Mapping[str, int] | None
    by_protection: Mapping[str, int] | None
    sealed: tuple[SealedItems, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class InspectedItem(Identity):
    """An item of a backup, with `items=True`."""

    index: int
    protection: str | None
    readable: bool
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Inspection(Answer):
    """What is in a backup (backup-inspection/1)."""

    device: Device
    encrypted: bool | None
    made: datetime.datetime | None
    layout: str
    files: int
    domains: int | None
    missing: int | None
    keybag: Keybag
    keychain: Keychain
    bytes: int | None = None
    passcode_set: bool | None = None
    findings: tuple[Finding, ...] = ()
    items: tuple[InspectedItem, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Check(Record):
    """One thing that was looked at."""

    id: str
    ok: bool
    detail: str


@dataclass(frozen=True, kw_only=True)
class Unchecked(Record):
    """One thing that could not be looked at, and why."""

    id: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class Fault(Record):
    """One thing that is not as it was written, with its place."""

    check: str
    id: str
    detail: str
    file: str | None = None
    offset: int | None = None
    bytes: int | None = None
    index: int | None = None


@dataclass(frozen=True, kw_only=True)
class FileCounts(Record):
    """The listed files by what was found of them."""

    listed: int
    present: int
    empty_not_stored: int
    missing: int
    surplus: int
    digests_right: int
    without_digest: int
    padding_right: int
    other_size: int
    unread: int


@dataclass(frozen=True, kw_only=True)
class ItemCounts(Record):
    """The items by whether they opened."""

    readable: int
    device_bound: int
    damaged: int


@dataclass(frozen=True, kw_only=True)
class Verification(Answer):
    """Whether a backup is whole (backup-verification/1). `whole` is False also where a change could not have been seen."""

    checks: tuple[Check, ...]
    items: ItemCounts | None
    whole: bool
    archive: str | None = None
    quick: bool = False
    unchecked: tuple[Unchecked, ...] = ()
    faults: tuple[Fault, ...] = ()
    fault_count: int = 0
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    files: FileCounts | None = None
    verdict: str | None = None
    hostile: bool = False


@dataclass(frozen=True, kw_only=True)
class Source(Record):
    """What a plan is of. `digest` is over the manifest, the list of files and the keychain file, however they are packed."""

    kind: str
    name: str
    encrypted: bool
    digest: str
    device: str | None = None
    device_name: str | None = None
    made: datetime.datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Future(Record):
    """How many items come back on one device: a new one, or the same one after it was erased."""

    future: str
    password: bool
    same_device: bool
    arrives: int
    expected: int
    stays_behind: int
    unreadable: int
    never_in_backup: int | None
    not_in_this_backup: int | None
    total: int
    by_warning: Mapping[str, int] | None = None


@dataclass(frozen=True, kw_only=True)
class Prospect(Record):
    """What becomes of one item in one future; `reason` where it does not come back."""

    password: bool
    same_device: bool
    outcome: str
    reason: str | None = None
    warning: str | None = None
    expected: bool = False


@dataclass(frozen=True, kw_only=True)
class FutureItem(Identity):
    """An item, with one prospect for each future, in their order."""

    index: int
    protection: str | None
    outcomes: tuple[Prospect, ...]


@dataclass(frozen=True, kw_only=True)
class Futures(Answer):
    """What comes back on a new device and on the same one, erased (migration-futures/1)."""

    made: datetime.datetime
    source: Source
    verdict: str
    basis: str
    tried_hardware: bool
    futures: tuple[Future, ...]
    items: tuple[FutureItem, ...]


@dataclass(frozen=True, kw_only=True)
class Target(Record):
    """The device that a plan restores to."""

    name: str
    same_device: bool | None
    state: str
    revision: str
    claims_same_device: bool | None = None
    passcode_set: bool | None = None
    items: int | None = None


@dataclass(frozen=True, kw_only=True)
class Summary(Record):
    """A plan's items, counted."""

    total: int
    migrates: int
    stays_behind: int
    unreadable: int
    removed: int
    by_reason: Mapping[str, int] = field(default_factory=dict)
    by_warning: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PlannedItem(Identity):
    """An item, and what a restore would do with it: `change` where it arrives, `reason` where it does not."""

    index: int
    protection: str | None
    outcome: str
    change: str | None = None
    reason: str | None = None
    detail: str | None = None
    warning: str | None = None


@dataclass(frozen=True, kw_only=True)
class MigrationPlan(Answer):
    """What one restore would do (migration-plan/1)."""

    made: datetime.datetime
    source: Source
    target: Target
    policy: str
    summary: Summary
    items: tuple[PlannedItem, ...]
    removed: tuple[Identity, ...] = ()
    findings: tuple[Finding, ...] = ()


Plan: TypeAlias = Futures | MigrationPlan
