"""What changes of one table get from the order of all tables' changes: places, serial numbers, events.

`ordered.py` assigns the numbers, `envelope_texts.py` builds records with them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from mssql_cdc.records.rows import Changes, Numbers
from mssql_cdc.records.transactions import Orders


@dataclass(frozen=True, slots=True)
class Numbered:
    """What streamed changes of one table get from the order of all: arrays with one element per change.

    `place` is the place of each change among all tables' changes. With transaction metadata, `first` is the number of
    the change's event (of its delete, if it moves a row), `create` the number of a move's create; -1: none.
    `before` counts the events before the change.
    """

    place: Numbers
    serial: Numbers
    captured_us: pa.Array
    moved: Numbers
    dropped: Numbers
    orders: Orders | None = None
    before: Numbers | None = None
    first: Numbers | None = None
    create: Numbers | None = None

    def with_events(self, orders: Orders, before: Numbers, first: Numbers, create: Numbers) -> Numbered:
        """Return the same changes with their events, for transaction metadata.

        Args:
            orders: The number of each event in its transaction and among the events of its table.
            before: As in the attributes.
            first: As in the attributes.
            create: As in the attributes.
        """
        return replace(self, orders=orders, before=before, first=first, create=create)


def taken(changes: Changes, rows: Numbers) -> Changes:
    """Return some of the changes."""
    where = pa.array(rows)
    return Changes(
        changes.shape,
        changes.pos.take(where),
        changes.op.take(where),
        changes.batch[rows],
        changes.commit_us.take(where),
        changes.commit_lsn.take(where),
        changes.change_lsn.take(where),
        changes.before.take(where),
        changes.after.take(where),
        None if changes.key_before is None else changes.key_before.take(where),
        None if changes.key_after is None else changes.key_after.take(where),
        None if changes.same_key is None else changes.same_key.take(where),
        None if changes.header_before is None else changes.header_before.take(where),
        None if changes.header_after is None else changes.header_after.take(where),
        None if changes.unchanged is None else changes.unchanged.take(where),
    )


def taken_numbers(numbered: Numbered, rows: Numbers) -> Numbered:
    """Return the numbers of some of the changes."""
    found = Numbered(
        numbered.place[rows],
        numbered.serial[rows],
        numbered.captured_us.take(pa.array(rows)),
        numbered.moved[rows],
        numbered.dropped[rows],
    )
    if numbered.orders is None or numbered.before is None or numbered.first is None or numbered.create is None:
        return found
    return found.with_events(numbered.orders, numbered.before[rows], numbered.first[rows], numbered.create[rows])
