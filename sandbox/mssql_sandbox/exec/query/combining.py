"""Set operations over plans: a chain of any length is one loop, and adjacent operations share one operator."""

from __future__ import annotations

from collections.abc import Sequence

from mssql_sandbox.exec.plans import Operator
from mssql_sandbox.exec.query.alignment import as_types, common_fields
from mssql_sandbox.exec.query.operators import Concatenation
from mssql_sandbox.exec.query.sorting import Difference, Distinct
from mssql_sandbox.exec.scope import Field


class Combination:
    """Operands combined from left to right: the last run of UNION or UNION ALL is still open."""

    def __init__(self, first: Operator) -> None:
        self._parts: list[Operator] = [first]
        self._fields: Sequence[Field] = ()
        self._distinct = False

    def add(self, operator: str, right: Operator) -> None:
        """Combine what is there with `right`; 205 for another number of columns."""
        have = self._fields or self._parts[0].fields
        fields = common_fields(have, right.fields)
        every = operator == "UNION ALL"
        if not self._goes_on(fields) or (every and self._distinct) or operator in ("EXCEPT", "INTERSECT"):
            self._parts = [as_types(self.plan(), fields)]
            self._distinct = False
        self._fields = fields
        right = as_types(right, fields)
        if operator in ("EXCEPT", "INTERSECT"):
            self._parts = [Difference(self._parts[0], right, fields, keep=operator == "INTERSECT")]
        else:
            self._parts.append(right)
            self._distinct = not every

    def _goes_on(self, fields: Sequence[Field]) -> bool:
        """Whether the parts so far have the types of these fields."""
        return [field.type for field in self._fields] == [field.type for field in fields]

    def plan(self) -> Operator:
        """The combination so far."""
        if len(self._parts) == 1:
            return self._parts[0]
        whole = Concatenation(self._parts, self._fields)
        return Distinct(whole) if self._distinct else whole
