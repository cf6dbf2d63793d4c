"""The program's results as values, with the fields of docs/schemas.

Names come from the backup and may contain any characters. Reasons, fault ids and the like are text and not
enumerations, because a newer program may use values that this package does not know.
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
    """An anomaly that no device writes, or damage that was skipped to show the rest."""

    id: str
    detail: str
    place: str | None = None
    lost: bool | None = None
    restorable: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Identity(Record):
    """The names of an item. A name is None if the item does not have it or could not be decrypted."""

    kind: str
    label: str | None = None
    account: str | None = None
    service: str | None = None
    server: str | None = None
    access_group: str | None = None


@dataclass(frozen=True, kw_only=True)
class Answer(Record):
    """A result. `code` is the exit code; `error` is the program's error if the code is not 0, 2 or 3."""

    format: str
    code: int = 0
    error: KeyhaulError | None = None
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Device(Record):
    """The source device of a backup."""

    udid: str | None
    name: str | None
    product_type: str | None
    product_version: str | None
    model_name: str | None = None
    build_version: str | None = None
    serial_number: str | None = None


@dataclass(frozen=True, kw_only=True)
class ClassKey(Record):
    """A class key of the keybag.

    `number` is the protection class, with the generation in its upper bits. `wrap` says what wraps the key: the device
    (1), the password (2) or both (3).
    """

    number: int | None = field(metadata={"member": "class"})
    wrap: int | None
    key_type: int
    protection: str | None = None
    generation: int | None = None


@dataclass(frozen=True, kw_only=True)
class Keybag(Record):
    """The keybag of a backup, with the iterations for its password."""

    version: int | None
    type: int | None
    uuid: str | None
    rounds: tuple[int, ...]
    classes: tuple[ClassKey, ...]
    unlock_seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class SealedItems(Record):
    """The number of items that cannot be decrypted, for one kind, protection class and reason."""

    kind: str
    protection: str | None
    reason: str
    count: int


@dataclass(frozen=True, kw_only=True)
class Keychain(Record):
    """The numbers of items in a backup's keychain. A number is None if it needs the password."""

    present: bool
    items: Mapping[str, int] | None
    by_protection: Mapping[str, int] | None
    sealed: tuple[SealedItems, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class InspectedItem(Identity):
    """An item of a backup; listed with `items=True`."""

    index: int
    protection: str | None
    readable: bool
    reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Inspection(Answer):
    """The contents of a backup (backup-inspection/1)."""

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
    has_seal: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Check(Record):
    """A check that was performed."""

    id: str
    ok: bool
    detail: str


@dataclass(frozen=True, kw_only=True)
class Unchecked(Record):
    """A check that could not be performed, with the reason."""

    id: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class Fault(Record):
    """Damage or a change, with its location."""

    check: str
    id: str
    detail: str
    file: str | None = None
    offset: int | None = None
    bytes: int | None = None
    index: int | None = None


@dataclass(frozen=True, kw_only=True)
class FileCounts(Record):
    """The number of files in the manifest, by the result of their check."""

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
    """The number of items, by whether they could be decrypted."""

    readable: int
    device_bound: int
    damaged: int


@dataclass(frozen=True, kw_only=True)
class Verification(Answer):
    """Whether a backup is intact (backup-verification/1).

    `whole` is also False if a change could not have been detected.
    """

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
    seal: str | None = None
    device_key: str | None = None


@dataclass(frozen=True, kw_only=True)
class Source(Record):
    """The source of a plan.

    `digest` covers `Manifest.plist`, the manifest database and the keychain file. It is the same for a folder and an
    archive.
    """

    kind: str
    name: str
    encrypted: bool
    digest: str
    device: str | None = None
    device_name: str | None = None
    made: datetime.datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Future(Record):
    """How many items one device gets: a new device, or the same device after an erase."""

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
    """What happens to an item on one device; `reason` is set if the item does not arrive."""

    password: bool
    same_device: bool
    outcome: str
    reason: str | None = None
    warning: str | None = None
    expected: bool = False


@dataclass(frozen=True, kw_only=True)
class FutureItem(Identity):
    """An item, with one outcome for each entry of `futures`, in the same order."""

    index: int
    protection: str | None
    outcomes: tuple[Prospect, ...]


@dataclass(frozen=True, kw_only=True)
class Futures(Answer):
    """The items that a new device gets, and that the same device gets after an erase (migration-futures/1)."""

    made: datetime.datetime
    source: Source
    verdict: str
    basis: str
    tried_hardware: bool
    futures: tuple[Future, ...]
    items: tuple[FutureItem, ...]
    details: str | None = None


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
    """The number of a plan's items, by outcome."""

    total: int
    migrates: int
    stays_behind: int
    unreadable: int
    removed: int
    by_reason: Mapping[str, int] = field(default_factory=dict)
    by_warning: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PlannedItem(Identity):
    """An item and its outcome in a restore: `change` if it arrives, `reason` if it does not."""

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
