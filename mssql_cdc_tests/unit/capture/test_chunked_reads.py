"""Case B on a model source: chunks read at different times under capture lag and folded once equal the source.

The model implements the rules C18 and C19 literally: `_pos` of a chunk's rows is its own mark L, the stream starts at
the smallest L, and the result is not used before the stream has passed the largest log end E.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mssql_cdc.capture.snapshot.chunk_plan import Ended, GroupDone, TablePlan, conclude, remaining
from mssql_cdc.lsn import Lsn
from mssql_cdc.schema import TableId
from mssql_cdc.source.values import Chunk

KEYS = 6
CHUNKS = 3
ACTIONS = st.one_of(
    st.tuples(st.just("write"), st.integers(0, KEYS - 1), st.none() | st.integers(1, 9)),
    st.tuples(st.just("capture"), st.integers(1, 4), st.none()),
    st.tuples(st.just("read"), st.none(), st.none()),
)


def lsn(number: int) -> Lsn:
    return Lsn(number.to_bytes(10, "big"))


class Source:
    """Keys with values, a log of changes, and its captured part."""

    def __init__(self) -> None:
        self.state: dict[int, int] = {}
        self.log: list[tuple[int, int, int | None]] = []
        self.captured = 1

    def write(self, key: int, value: int | None) -> None:
        if value is None and key not in self.state:
            return
        self.log.append((len(self.log) + 2, key, value))
        if value is None:
            del self.state[key]
        else:
            self.state[key] = value

    def capture(self, count: int) -> None:
        self.captured = min(self.captured + count, len(self.log) + 1)

    @property
    def end(self) -> int:
        return len(self.log) + 1

    def at(self, position: int) -> dict[int, int]:
        state: dict[int, int] = {}
        for commit, key, value in self.log:
            if commit <= position:
                state.pop(key, None)
                if value is not None:
                    state[key] = value
        return state


@settings(max_examples=300, deadline=None)
@given(st.lists(ACTIONS, max_size=40), st.lists(ACTIONS, max_size=20))
def test_chunks_and_stream_fold_to_the_source(during, after):
    source = Source()
    plan = TablePlan(TableId("db", "dbo", "t"), tuple(Chunk(n) for n in range(CHUNKS)), lsn(1))
    rows: list[tuple[tuple[int, int], int, int | None]] = []
    done: list[GroupDone] = []

    def read_next() -> None:
        left = remaining(plan, done, lsn(1))
        if not left:
            return
        low, number = source.captured, left[0].number
        rows.extend(((low, 1), key, v) for key, v in source.state.items() if key % CHUNKS == number)
        done.append(GroupDone((number,), lsn(low)))

    def play(actions) -> None:
        for action, first, second in actions:
            if action == "write":
                source.write(first, second)
            elif action == "capture":
                source.capture(first)
            else:
                read_next()

    play(during)
    for _ in range(CHUNKS):
        read_next()
    end = source.end
    play(after)
    source.capture(len(source.log))
    ended = conclude(plan, done, lsn(1))
    assert isinstance(ended, Ended)
    start = int.from_bytes(ended.position.raw, "big")
    for cut in range(end, source.captured + 1):
        events = [((at, 0), key, value) for at, key, value in source.log if start < at <= cut]
        folded = {key: value for _, key, value in sorted(rows + events, key=lambda row: row[0])}
        assert {k: v for k, v in folded.items() if v is not None} == source.at(cut)
