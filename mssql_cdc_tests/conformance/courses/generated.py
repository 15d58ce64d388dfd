"""Random scripts: tables with odd names and any types, transactions, key changes, large values, new columns.

A seed gives the same scripts again. All run in one course: a run of Debezium costs far more than a script.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from mssql_cdc_tests.conformance.courses.types import SAMPLES, Sample
from mssql_cdc_tests.conformance.source import quoted
from mssql_cdc_tests.conformance.workload import READ, SCHEMAS, WAIT, Course, Reading, Script, Step, captured

NAMES = ("a", "Größe", "my column", "2nd", "a.b", "_c", "日本", "Select", "x]y", "it's")
READINGS = (
    Reading(name="live", properties=SCHEMAS | {"provide.transaction.metadata": "true"}, is_live=True,
            expected=("schema-change-position", "old-dates")),
    Reading(name="texts", is_live=True, expected=("no-converter", "schema-change-position", "old-dates"), properties={
        "time.precision.mode": "isostring", "decimal.handling.mode": "string", "binary.handling.mode": "hex",
        "message.key.columns": r"dbo\.r\d+:id", "field.name.adjustment.mode": "avro_unicode",
    }),
)  # fmt: skip
_Draw = Callable[[st.SearchStrategy[Any]], Any]


def generated(number: int, *, scripts: int) -> Course:
    """Return a course of random scripts.

    Args:
        number: The seed.
        scripts: How many scripts.
    """
    found: list[Script] = []

    @seed(number)
    @settings(
        max_examples=scripts,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
    )
    @given(st.data())
    def collect(data: st.DataObject) -> None:
        if len(found) < scripts:
            found.append(_script(f"r{len(found)}", number, data.draw))

    collect()
    return Course(
        name=f"generated-{number}", databases=(f"conf_generated_{number}",), scripts=tuple(found), readings=READINGS,
        properties={"schema.history.internal.store.only.captured.tables.ddl": "true"},
    )  # fmt: skip


def _script(table: str, number: int, draw: _Draw) -> Script:
    name = f"{table}{draw(st.sampled_from(('', ' x', '.y', 'Ü')))}"
    full = f"dbo.{quoted(name)}"
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True))
    columns = {column: draw(st.sampled_from(SAMPLES)) for column in names}
    key = draw(st.sampled_from(("PRIMARY KEY (id)", "PRIMARY KEY (more, id)", "UNIQUE (id)", "")))
    declared = "".join(f", {quoted(column)} {_declared(draw, one)}" for column, one in columns.items())
    setup = [
        (
            f"CREATE TABLE {full} (id int NOT NULL, more varchar(10) NOT NULL DEFAULT 'm'{declared}"
            f"{', ' if key else ''}{key})"
        ),
        captured(name),
    ]
    rows = _Rows(full, columns, draw)
    setup += [rows.insert() for _ in range(draw(st.integers(0, 3)))]
    changes: list[Step] = [rows.transaction() for _ in range(draw(st.integers(1, 6)))]
    if draw(st.booleans()):
        added = draw(st.sampled_from([one for one in ("new", "Neu ü", "n.1") if one not in columns]))
        sample = draw(st.sampled_from(SAMPLES))
        changes += [
            READ,  # Of instances that begin in one poll, Debezium tells late.
            f"ALTER TABLE {full} ADD {quoted(added)} {sample.declaration} NULL",
            captured(name, capture_instance=f"N'{table}_v2'"),
            WAIT,
        ]
        columns[added] = sample
        changes += [rows.transaction() for _ in range(draw(st.integers(1, 3)))]
    return Script(
        name=table, group="generated", restates=f"seed {number}", tables=(f"dbo.{name}",), setup=tuple(setup),
        changes=tuple(changes),
    )  # fmt: skip


def _declared(draw: _Draw, one: Sample) -> str:
    default = f" DEFAULT {one.default}" if draw(st.booleans()) else ""
    return f"{one.declaration} {'NULL' if draw(st.booleans()) or not default else 'NOT NULL'}{default}"


class _Rows:
    """Statements on a table; it knows the ids that are there, so that every statement succeeds."""

    def __init__(self, table: str, columns: dict[str, Sample], draw: _Draw) -> None:
        self.table, self.columns, self.draw = table, columns, draw
        self.ids: list[int] = []
        self.last = 0

    def transaction(self) -> str:
        """Return one statement, or several in a transaction."""
        count = self.draw(st.integers(1, 4))
        statements = [self.statement() for _ in range(count)]
        return statements[0] if count == 1 else f"BEGIN TRAN {' '.join(statements)} COMMIT"

    def statement(self) -> str:
        """Return an insert, an update, a change of the key or a delete."""
        kind = self.draw(st.sampled_from(("insert", "insert", "update", "update", "move", "delete")))
        if kind == "insert" or not self.ids:
            return self.insert()
        one = self.draw(st.sampled_from(self.ids))
        if kind == "delete":
            self.ids.remove(one)
            return f"DELETE FROM {self.table} WHERE id = {one}"
        if kind == "move":
            self.ids.remove(one)
            return f"UPDATE {self.table} SET id = {self._new()} WHERE id = {one}"
        name = self.draw(st.sampled_from(sorted(self.columns)))
        return f"UPDATE {self.table} SET {quoted(name)} = {self._value(name)} WHERE id = {one}"

    def insert(self) -> str:
        """Return an insert that leaves the columns out that have their default."""
        given = [name for name in self.columns if self.draw(st.booleans())]
        names, values = (f", {quoted(one)}" for one in given), (f", {self._value(one)}" for one in given)
        return f"INSERT INTO {self.table} (id{''.join(names)}) VALUES ({self._new()}{''.join(values)})"

    def _new(self) -> int:
        self.last += 1
        self.ids.append(self.last)
        return self.last

    def _value(self, name: str) -> str:
        return self.draw(st.sampled_from(self.columns[name].values))
