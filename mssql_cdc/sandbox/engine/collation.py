"""Collations: what a collation's name means, comparison keys, code pages.

What does not belong here: conversion between types (conversion.py) and which collation an expression gets.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Collation:
    """A collation by its canonical name, with the properties that the name spells out."""

    name: str
    case_sensitive: bool
    accent_sensitive: bool
    binary: bool
    sql_order: bool
    code_page: int
    lcid: int
    sort_id: int = 0
    version: int = 0
