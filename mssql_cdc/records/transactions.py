"""Debezium's transaction metadata: blocks, offsets, BEGIN and END records (TXN-01 to TXN-08).

The counts require all tables of the database in one order, so the lake does not store them (rule E28).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mssql_cdc.records.json_texts import Texts, joined, json_text
from mssql_cdc.records.names import java_hash
from mssql_cdc.records.numbering import changes

Numbers = np.ndarray[Any, Any]


@dataclass(slots=True)
class Transaction:
    """The open transaction: its id (the commit LSN), the number of events of each table so far, Java's buckets."""

    id: str | None = None
    events: dict[str, int] = field(default_factory=dict[str, int])
    buckets: int = 16

    def offset(self) -> dict[str, Any]:
        """Return the transaction's part of a record's offset (TXN-08)."""
        orders = {f"transaction_data_collection_order_{name}": count for name, count in self.events.items()}
        return orders if self.id is None else {"transaction_id": self.id, **orders}

    def next(self, ids: pa.Array, tables: Numbers, names: Sequence[str]) -> Orders:
        """Count the next events, which are in order.

        Args:
            ids: The transaction of each event.
            tables: The place of each event's table in `names`.
            names: The names of the tables.
        """
        known = list(dict.fromkeys([*self.events, *names]))
        place = {name: at for at, name in enumerate(known)}
        codes = np.array([place[name] for name in names], np.int64)[tables]
        # One event stands for all that the open transaction has had in a table.
        before = len(self.events)
        codes = np.concatenate([np.array([place[name] for name in self.events], np.int64), codes])
        begins = np.concatenate([[ids[0].as_py() != self.id], changes(ids)]) if len(ids) else np.zeros(0, bool)
        segment = np.concatenate([np.zeros(before, np.int64), np.cumsum(begins)])
        counted = _Counted.of(segment, codes, len(known), {place[name]: n - 1 for name, n in self.events.items()})
        opened = pa.array([self.id], pa.string())
        transactions = pa.concat_arrays([opened, ids.filter(pa.array(begins)).cast(pa.string())])
        buckets = counted.buckets(self.buckets, len(transactions))
        orders = Orders(before, begins, transactions, known, counted, buckets)
        last = len(transactions) - 1
        self.id = transactions[last].as_py()
        self.events = {known[table]: count for table, count in counted.tables_of(last)}
        self.buckets = int(buckets[-1])
        return orders


@dataclass(frozen=True, slots=True)
class _Counted:
    """Events by transaction (`segment`) and table: a *group*; arrays without `_of_group` have one element per event."""

    segment: Numbers
    group: Numbers
    total_order: Numbers
    table_order: Numbers
    segment_of_group: Numbers
    table_of_group: Numbers
    first_of_group: Numbers
    more_of_group: Numbers
    more: int
    _places: Numbers
    _starts: Numbers

    @classmethod
    def of(cls, segment: Numbers, tables: Numbers, table_count: int, more: Mapping[int, int]) -> _Counted:
        """Count events.

        Args:
            segment: The transaction of each event, ascending from 0.
            tables: The table of each event.
            table_count: The number of tables.
            more: The number of events of a table in segment 0 that are not listed.
        """
        count = len(tables)
        key = segment * max(table_count, 1) + tables
        order = np.argsort(key, kind="stable")
        sorted_key = key[order]
        starts = np.flatnonzero(np.concatenate([[True], sorted_key[1:] != sorted_key[:-1]])) if count else order
        sizes = np.diff(np.append(starts, count))
        group_sorted = np.repeat(np.arange(len(starts)), sizes)
        group, table_order = np.empty(count, np.int64), np.empty(count, np.int64)
        group[order] = group_sorted
        table_order[order] = np.arange(count) - starts[group_sorted] + 1
        first = np.searchsorted(segment, segment)
        keys = sorted_key[starts]
        places = group_sorted * count + order
        segment_of_group, table_of_group = keys // max(table_count, 1), keys % max(table_count, 1)
        unlisted = np.zeros(max(table_count, 1), np.int64)
        unlisted[list(more)] = list(more.values())
        more_of_group = np.where(segment_of_group == 0, unlisted[table_of_group], 0)
        total = sum(more.values())
        total_order = np.arange(count) - first + 1 + np.where(segment == 0, total, 0)
        return cls(
            segment, group, total_order, table_order + more_of_group[group],
            segment_of_group, table_of_group, order[starts], more_of_group, total, places, starts,
        )  # fmt: skip

    def so_far(self, groups: Numbers, event: Numbers) -> Numbers:
        """Return how many events of a group there were up to an event."""
        found = np.searchsorted(self._places, groups * len(self.segment) + event, side="right")
        listed = found - self._starts[groups]
        return listed + np.where(listed > 0, self.more_of_group[groups], 0)

    def slots(self, order: Numbers, segments: int) -> list[Numbers]:
        """Return the first, second … group of each segment in an order of all groups; -1 where there is none."""
        owners = self.segment_of_group[order]
        starts = np.searchsorted(owners, np.arange(segments))
        sizes = np.diff(np.append(starts, len(owners)))
        most = int(sizes.max(initial=0))
        return [np.where(sizes > k, order[np.minimum(starts + k, max(len(order) - 1, 0))], -1) for k in range(most)]

    def appearance(self) -> Numbers:
        """Return the groups by segment, in the order of their first events."""
        return np.lexsort((self.first_of_group, self.segment_of_group))

    def buckets(self, known: int, segments: int) -> Numbers:
        """Return the number of buckets of Java's map in each segment: the map grows and never shrinks."""
        sizes = np.bincount(self.segment_of_group, minlength=segments)
        needed = np.full(segments, known)
        while (too_small := sizes > needed * 3 // 4).any():
            needed = np.where(too_small, needed * 2, needed)
        return np.maximum.accumulate(needed)

    def tables_of(self, segment: int) -> list[tuple[int, int]]:
        """Return the tables of a segment and their numbers of events, in the order of their first events."""
        groups = self.appearance()
        groups = groups[self.segment_of_group[groups] == segment]
        counts = self.so_far(groups, np.full(len(groups), len(self.segment) - 1)) if len(groups) else groups
        return list(zip(self.table_of_group[groups].tolist(), counts.tolist(), strict=True))


@dataclass(frozen=True)
class Orders:
    """Events with their places in their transactions; `begins` shows which of them begin one.

    `carried` events of the transaction that was open precede them; `transactions` starts with that transaction's id.
    """

    carried: int
    begins: Numbers
    transactions: pa.Array
    names: Sequence[str]
    counted: _Counted
    buckets: Numbers

    def places(self, events: Numbers) -> tuple[Texts, Texts, Texts]:
        """Return the transaction's id, the total order and the table's order of some of the events."""
        mine = events + self.carried
        ids = self.transactions.take(pa.array(self.counted.segment[mine]))
        return ids, _shown(self.counted.total_order[mine]), _shown(self.counted.table_order[mine])

    def offsets(self, after: Numbers) -> Texts:
        """Return the transaction's part of an offset after that many of the events, with a comma before it (TXN-08)."""
        event = after + self.carried - 1
        # Before its first event, a transaction that was carried over is still the open one.
        segment = np.where(after > 0, self.counted.segment[np.maximum(event, 0)], 0) if len(self.counted.segment) else 0
        segment = np.broadcast_to(segment, len(after))
        ids = self.transactions.take(pa.array(segment))
        pieces: list[pa.Array | str] = [pc.fill_null(joined(',"transaction_id":"', ids, '"'), "")]
        prefixes = pa.array([f",{json_text(f'transaction_data_collection_order_{n}')}:" for n in self.names])
        for groups in self.counted.slots(self.counted.appearance(), len(self.transactions)):
            group = groups[segment]
            counts = np.where(group >= 0, self.counted.so_far(np.maximum(group, 0), event), 0)
            prefix = prefixes.take(pa.array(self.counted.table_of_group[np.maximum(group, 0)]))
            pieces.append(pc.if_else(pa.array(counts > 0), joined(prefix, _shown(counts)), ""))
        return joined(*pieces)

    @cached_property
    def ends(self) -> tuple[pa.Array, Texts, Texts]:
        """Ids, event counts and `data_collections` of the transactions that end where the next one begins."""
        counted, segments = self.counted, len(self.transactions)
        hashes = np.array([java_hash(name) for name in self.names], np.int64)
        bucket = hashes[counted.table_of_group] & (self.buckets[counted.segment_of_group] - 1)
        order = np.lexsort((counted.first_of_group, bucket, counted.segment_of_group))
        last = np.full(segments, len(counted.segment) - 1)
        totals = np.bincount(counted.segment, minlength=segments)
        totals[0] += counted.more
        pieces: list[pa.Array | str] = []
        names = pa.array([json_text(name) for name in self.names], pa.string())
        for place, groups in enumerate(counted.slots(order, segments)):
            safe = np.maximum(groups, 0)
            one = joined(
                ("," if place else "") + '{"data_collection":', names.take(pa.array(counted.table_of_group[safe])),
                ',"event_count":', _shown(counted.so_far(safe, last)), "}",
            )  # fmt: skip
            pieces.append(pc.if_else(pa.array(groups >= 0), one, ""))
        collections = joined("[", *pieces, "]") if pieces else pa.repeat(pa.scalar("[]"), segments)
        ended = segments - 1
        return self.transactions.slice(0, ended), _shown(totals).slice(0, ended), collections.slice(0, ended)


def _shown(numbers: Numbers) -> Texts:
    return pa.array(numbers, pa.int64()).cast(pa.string())
