"""SET options of a session."""

from __future__ import annotations

from dataclasses import dataclass, field

FLAGS = {
    "NOCOUNT": ("nocount", 512), "XACT_ABORT": ("xact_abort", 16384), "IMPLICIT_TRANSACTIONS": ("implicit", 2),
    "ANSI_NULLS": ("ansi_nulls", 32), "ANSI_WARNINGS": ("ansi_warnings", 8), "ANSI_PADDING": ("ansi_padding", 16),
    "ARITHABORT": ("arithabort", 64), "ARITHIGNORE": ("arithignore", 128),
    "QUOTED_IDENTIFIER": ("quoted_identifier", 256),
    "CONCAT_NULL_YIELDS_NULL": ("concat_null", 4096), "NUMERIC_ROUNDABORT": ("numeric_roundabort", 8192),
    "ANSI_NULL_DFLT_ON": ("ansi_null_default", 1024), "CURSOR_CLOSE_ON_COMMIT": ("cursor_close_on_commit", 4),
    "FMTONLY": ("fmtonly", 0), "NOEXEC": ("noexec", 0), "PARSEONLY": ("parseonly", 0),
}  # fmt: skip
"""Options that are ON or OFF: attribute and bit in @@OPTIONS."""
ARITHMETIC_ERRORS = frozenset({220, 232, 8115, 8134})
"""Overflow and division by zero: their effect depends on ARITHABORT and ANSI_WARNINGS."""


@dataclass(slots=True)
class SessionOptions:
    """Values after login."""

    nocount: bool = False
    xact_abort: bool = False
    implicit: bool = False
    ansi_nulls: bool = True
    ansi_warnings: bool = True
    ansi_padding: bool = True
    arithabort: bool = False
    arithignore: bool = False
    quoted_identifier: bool = True
    concat_null: bool = True
    numeric_roundabort: bool = False
    ansi_null_default: bool = True
    cursor_close_on_commit: bool = False
    fmtonly: bool = False
    noexec: bool = False
    parseonly: bool = False
    lock_timeout: int = -1
    date_first: int = 7
    date_format: str = "mdy"
    language: str = "us_english"
    text_size: int = 2147483647
    row_limit: int = 0
    deadlock_priority: int = 0
    others: dict[str, str] = field(default_factory=dict)

    @property
    def forgives_arithmetic(self) -> bool:
        """Whether overflows and divisions by zero give NULL instead of an error."""
        return not self.ansi_warnings and not self.arithabort

    def compiled_in(self) -> tuple[bool, ...]:
        """The options that compiled statements have used."""
        return self.ansi_warnings, self.arithabort, self.arithignore, self.concat_null, self.ansi_nulls

    def bits(self) -> int:
        """@@OPTIONS."""
        return sum(bit for attribute, bit in FLAGS.values() if getattr(self, attribute))
