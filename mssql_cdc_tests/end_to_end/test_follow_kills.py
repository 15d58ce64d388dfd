"""`records --follow` is killed under load: what its consumer had, and what comes next, is complete and ordered.

It is killed at random moments, and goes on behind the offset of any record that the consumer had read and committed.
Deletions, changed keys and values larger than a pipe are among the load. Four kills; `make kills` for a hundred,
`SEED=2` for other moments.
"""

from __future__ import annotations

import json
import os
import random
import signal
import time
from typing import Any

import pytest

from mssql_cdc_tests.end_to_end.followed import Followed, Line, data_of, followed
from mssql_cdc_tests.end_to_end.kit import Place
from mssql_cdc_tests.end_to_end.load import TABLES, Change, Churn, change_of, create, writing

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("MSSQL_CDC_KILLS", "4"))
SEED = int(os.environ.get("MSSQL_CDC_SEED", "1"))
METADATA = "true" if SEED % 2 else "false"
"""With transaction metadata, a changed key's deletion and insertion have offsets of their own."""
LARGE = 30_000
"""Characters of three bytes each: a record is larger than a pipe, and the value smaller than `max text repl size`."""


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.feature("STR-04", "STR-22", "ERR-06")
def test_output_that_is_cut_after_the_last_committed_record_is_complete_and_ordered(place: Place):
    place.configure(**{"provide.transaction.metadata": METADATA, "message.key.columns": "dbo.texts:mark"})
    create(place)
    place.create("texts", "id int NOT NULL PRIMARY KEY, mark int NOT NULL, body nvarchar(max) NOT NULL")
    place.settle()
    with followed(place) as found:
        found.wait_for(lambda one: any(event["event"] == "streaming" for event in one.events))
        assert found.end() == 0
    chance = random.Random(SEED)
    churn = Churn(place, random.Random(SEED))
    churn.fill()
    kept: list[Line] = []
    with churn.running(), writing(place, _texts, pause=0.2):
        for _ in range(KILLS):
            with followed(place, control=True) as found:
                way = chance.random()  # A third is killed before the first record, or before the start.
                if way < 0.8:
                    found.wait_for(lambda one: any(event["event"] == "started" for event in one.events))
                if way < 0.65:
                    found.wait_for(lambda one: data_of(one.records))
                sent = _commit_for(found, chance.uniform(0, 2), chance)
                found.end(signal.SIGKILL)
            kept = _joined(kept, found.records[: _committed(place, found.records, sent) + 1])
    place.settle()
    expected = _expected(place)
    with followed(place) as found:
        found.wait_for(lambda one: len(_changes(_joined(kept, one.records))) >= len(expected))
        found.wait_for(lambda one: one.records[-1]["value"] is None or _changes(one.records)[-1][1] != "d")
        assert found.end() == 0
    assert KILLS < 4 or kept, "offsets were committed"
    records = _joined(kept, found.records)
    assert _changes(records) == expected, f"seed {SEED}"
    places = [one["value"]["payload"]["source"] for one in data_of(records)]
    order = [(at["commit_lsn"], at["change_lsn"] or "", at["event_serial_no"] or 0) for at in places]
    assert order == sorted(order)
    assert _without_tombstone(records) == []
    assert _transactions(records) == []


def _texts(number: int) -> list[str]:
    """Insert a row whose value is larger than a pipe, and change or delete the one before; `mark` is its key."""
    before = number - 1
    change = f"DELETE FROM dbo.texts WHERE id = {before}" if number % 3 else ""
    return [
        f"INSERT INTO dbo.texts VALUES ({number}, {number}, REPLICATE(CAST(N'日' AS nvarchar(max)), {LARGE}))",
        change or f"UPDATE dbo.texts SET mark = mark + 1000000 WHERE id = {before}",
    ]


def _commit_for(found: Followed, seconds: float, chance: random.Random) -> list[int]:
    """Commit the offset of a record that was read again and again, as a consumer does; return their places."""
    sent: list[int] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        last = len(found.records) - 1
        at = chance.randint(max(last - 3, sent[-1] if sent else 0), last) if last >= 0 else -1
        if at >= 0 and found.records[at]["sourceOffset"].get("change_lsn"):
            one = found.records[at]
            found.command(
                command="commit", offsets=[{"partition": one["sourcePartition"], "offset": one["sourceOffset"]}]
            )
            sent.append(at)
        time.sleep(chance.uniform(0.01, 0.2))
    return sent


def _committed(place: Place, records: list[Line], sent: list[int]) -> int:
    """The place of the last record whose offset was committed; all behind it come again. -1: there is none."""
    path = place.folder / "state" / "committed-offsets.json"
    if not path.exists():
        return -1
    (entry,) = json.loads(path.read_text(encoding="utf-8"))["offsets"]
    return max((at for at in sent if records[at]["sourceOffset"] == entry["offset"]), default=-1)


def _joined(kept: list[Line], new: list[Line]) -> list[Line]:
    """The records of a consumer that has some, and gets others: those that share the last offset come again."""
    if not kept:
        return list(new)
    offset = kept[-1]["sourceOffset"]
    first = next(place for place, one in enumerate(kept) if one["sourceOffset"] == offset)
    again = kept[first + 1 :]
    shared = min(len(again), len(new))
    assert list(map(_identity, new[:shared])) == list(map(_identity, again[:shared]))
    return kept + new[shared:]


def _identity(record: Line) -> tuple[Any, ...]:
    payload = (record["value"] or {}).get("payload") or {}
    return record["topic"], str(record["key"]), payload.get("op"), str(record["sourceOffset"])


def _changes(records: list[Line]) -> list[Change]:
    """The changes; of a row with a large value, how long that is."""
    found: list[Change] = []
    for payload in (one["value"]["payload"] for one in data_of(records)):
        if payload["source"]["table"] == "texts":
            row = payload["before" if payload["op"] == "d" else "after"]
            found.append(("texts", payload["op"], row["mark"], len(row["body"] or "")))
        else:
            found.append(change_of(payload))
    return found


def _expected(place: Place) -> list[Change]:
    """The changes of all three tables in the order of the change tables."""
    columns = "__$start_lsn s, __$command_id c, __$seqval q, __$operation o, id"
    query = " UNION ALL ".join(
        [
            f"SELECT 'texts' t, {columns}, mark n, LEN(body) size FROM cdc.dbo_texts_CT",
            *(f"SELECT '{name}', {columns}, n, 0 FROM cdc.dbo_{name}_CT" for name in TABLES),
        ]
    )
    rows = place.control.rows(f"SELECT t, o, id, n, size FROM ({query}) x ORDER BY s, c, q, o", doing="reading changes")
    found: list[Change] = []
    before = ("", 0, 0, 0)
    for table, operation, id_, n, size in ((str(t), int(o), int(i), int(m), int(z or 0)) for t, o, i, m, z in rows):
        own = ("texts", n, size) if table == "texts" else (table, id_, n)
        if operation == 3:
            before = (*own, 0)
        elif operation == 4 and before[1] != own[1]:
            found += [(table, "d", before[1], before[2]), (table, "c", own[1], own[2])]
        else:
            found.append((table, {1: "d", 2: "c", 4: "u"}[operation], own[1], own[2]))
    return found


def _without_tombstone(records: list[Line]) -> list[Any]:
    """The keys of deletions that no tombstone follows."""
    pairs = zip(records, [*records[1:], None], strict=True)
    return [
        one["key"]
        for one, following in pairs
        if one["value"] is not None
        and (one["value"]["payload"] or {}).get("op") == "d"
        and (following is None or following["value"] is not None or following["key"] != one["key"])
    ]


def _transactions(records: list[Line]) -> list[str]:
    """What is wrong with the boundaries: each transaction has one BEGIN, and an END with the number of its events."""
    wrong: list[str] = []
    begun: dict[str, int] = {}
    for one in records:
        payload = (one["value"] or {}).get("payload") or {}
        if one["topic"].endswith(".transaction"):
            if payload["status"] == "BEGIN" and payload["id"] in begun:
                wrong.append(f"second BEGIN of {payload['id']}")
            if payload["status"] == "END" and begun.get(payload["id"]) != payload["event_count"]:
                wrong.append(f"END of {payload['id']}: {payload['event_count']}, seen {begun.get(payload['id'])}")
            begun.setdefault(payload["id"], 0)
        elif payload.get("transaction"):
            begun[payload["transaction"]["id"]] = begun.get(payload["transaction"]["id"], 0) + 1
    return wrong
