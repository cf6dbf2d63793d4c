"""What the program says when it does not answer, as an exception."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class KeyhaulError(Exception):
    """The program ended with an error.

    `code` is the exit code and `id` its name (docs/Scripting.md). A code that is not known here is an error like any
    other. `message`, `why` and `advice` are for people; names in them come from the backup and may be hostile.
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
    """There is no program to call."""

    def __init__(self, message: str, why: str | None = None, advice: str | None = None) -> None:
        super().__init__(127, "program-not-found", message, why, advice)

    def __reduce__(self) -> tuple[type[ProgramNotFound], tuple[str, str | None, str | None]]:
        return type(self), (self.message, self.why, self.advice)
