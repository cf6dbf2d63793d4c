"""The errors of the program, as exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# The ids of the exit codes, as in docs/Scripting.md. Other codes do not have an id of their own.
IDS: Mapping[int, str] = {
    0: "ok",
    1: "failed",
    2: "differs",
    3: "partial",
    4: "no-match",
    5: "done-but",
    10: "not-found",
    11: "busy",
    12: "wrong-password",
    13: "damaged",
    14: "refused",
    15: "locked",
    16: "stale-plan",
    64: "usage",
}


def id_of_code(code: int) -> str:
    """Return the id of an exit code."""
    return "signal" if code > 128 else IDS.get(code, "failed")


class KeyhaulError(Exception):
    """The program ended without a result.

    `code` is the exit code, and `id` is its name (docs/Scripting.md). `message`, `why` and `advice` are for people.
    They may contain names from the backup, so escape them before you show them. The error can be pickled.
    """

    def __init__(
        self,
        code: int,
        id: str,
        message: str,
        why: str | None = None,
        advice: str | None = None,
        raw: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(code, id, message, why, advice, raw)
        self.code = code
        self.id = id
        self.message = message
        self.why = why
        self.advice = advice
        self.raw: Mapping[str, Any] = raw or {}

    def __str__(self) -> str:
        return f"{self.message}: {self.why}" if self.why else self.message


class ProgramNotFound(KeyhaulError):
    """The program `keyhaul` was not found, or cannot be run."""

    def __init__(self, message: str, why: str | None = None, advice: str | None = None) -> None:
        super().__init__(127, "program-not-found", message, why, advice)

    def __reduce__(self) -> tuple[type[ProgramNotFound], tuple[str, str | None, str | None]]:
        return type(self), (self.message, self.why, self.advice)


class TimedOut(KeyhaulError):
    """The program ran longer than its timeout, or was canceled. It and its child processes were stopped."""

    def __init__(self, message: str, why: str | None = None) -> None:
        super().__init__(124, "timed-out", message, why, "more time, or another copy of the backup")

    def __reduce__(self) -> tuple[type[TimedOut], tuple[str, str | None]]:
        return type(self), (self.message, self.why)
