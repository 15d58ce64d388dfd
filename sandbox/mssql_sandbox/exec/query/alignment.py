"""Common column types of combined queries: set operations, the members of recursive common table expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mssql_sandbox.engine import types as t
from mssql_sandbox.errors import error
from mssql_sandbox.exec.expressions.base import coerce, column
from mssql_sandbox.exec.expressions.values import unified
from mssql_sandbox.exec.plans import Operator
from mssql_sandbox.exec.query.masks import common_mask
from mssql_sandbox.exec.query.operators import Projection
from mssql_sandbox.exec.scope import Field


def common_fields(left: Sequence[Field], right: Sequence[Field]) -> list[Field]:
    """The columns of a set operation: common types, and the names of the left side; 205."""
    if len(left) != len(right):
        raise error(205)
    fields = []
    for first, second in zip(left, right, strict=True):
        type_ = _union_type(first, second)
        nullable = first.nullable or second.nullable
        fields.append(Field(first.name, type_, nullable, masking=common_mask(first, second)))
    return fields


def _union_type(first: Field, second: Field) -> t.SqlType:
    sides = []
    for field in (first, second):
        made = column(0, field.type, nullable=field.nullable)
        sides.append(replace(made, null=field.special == "null"))
    return unified(sides, "UNION")


def as_types(plan: Operator, fields: Sequence[Field]) -> Operator:
    """The plan with its columns converted to the types of `fields`."""
    exprs = []
    for place, (have, want) in enumerate(zip(plan.fields, fields, strict=True)):
        made = column(place, have.type, nullable=have.nullable)
        exprs.append(replace(made, type=want.type) if have.special == "null" else coerce(made, want.type))
    return Projection(plan, exprs, fields)
