"""How much each part works on: in small, as issue 11 wants it, and for tests. Names of figures give the sizes."""

from __future__ import annotations

from dataclasses import dataclass

TABLES = 20
"""The tables of `changes`, `records` and `memory`."""
SMALL_TABLES = 50
"""The small tables of `snapshots`, of a fiftieth of the large one each."""
COLD_TABLES = 8
"""The tables of `start`."""


def change_rows(events: int) -> int:
    """The rows that CDC stores for so many change events of `mix.py`: two for each of the 70 % updates."""
    return events * 17 // 10


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a run.

    Attributes:
        filled: The rows of tables before they change: the least, the most.
        stream: Change events over twenty tables, a round, for the rates.
        step: Change events over twenty tables, a round, for the current tables' time on top of the change logs'.
        warm: Change events, or rows, before the first round: more than 100,000, so that Spark reads them and is warm
            then, and that the compilers of Debezium's JVM have optimized what handles a record.
        rows: Rows of the large table of `snapshots`.
        memory: Rows behind which memory is measured, and again behind four times as many.
        slices: Parts of `memory` that are changed, read and cleaned up in turn.
        large: Rows of the table of `large`.
        records: Change events whose records are rendered, a round.
        incremental: Rows of the table of which `incremental` takes snapshots.
        chunk: The rows of a chunk there.
        quiet: Seconds for which its stream is alone.
        cold: Rows of the eight tables of `start` together.
        folds: For `current`: tables, their rows, the random changes of each.
        many: Tables that all change in a tick.
        captured: Tables of which one, twenty and all change in a tick; the tables of `windows`.
        days: Days of windows.
        seconds: How long the demo streams.
        followed: Changes that `follow` waits for.
        repeat: Rounds behind each median.
    """

    filled: tuple[int, int] = (10_000, 100_000)
    stream: int = 200_000
    step: int = 200_000
    warm: int = 200_000
    rows: int = 1_000_000
    memory: int = 1_000_000
    slices: int = 5
    large: int = 1_000_000
    records: int = 200_000
    incremental: int = 200_000
    chunk: int = 8_192
    quiet: float = 60
    cold: int = 200_000
    folds: tuple[tuple[int, int, int], ...] = ((4, 10_000, 100), (1, 1_000_000, 10_000))
    many: int = 50
    captured: int = 300
    days: int = 60
    seconds: float = 1200
    followed: int = 40
    repeat: int = 3

    @property
    def words(self) -> dict[str, str]:
        """The sizes as names of figures give them."""
        found = {name: f"{getattr(self, name):,}" for name in ("stream", "step", "rows", "memory", "records", "cold")}
        more = {
            "stream_rows": change_rows(self.stream),
            "small": self.rows // SMALL_TABLES,
            "more": 4 * self.memory,
            "many": self.many,
            "days": self.days,
        }
        return found | {name: f"{value:,}" for name, value in (more | {"captured": self.captured}).items()} | {
            "seconds": f"{self.seconds:,.0f}"
        }  # fmt: skip


SMALL = Sizes()
FULL = Sizes(stream=3_000_000, rows=5_000_000, memory=5_000_000, large=20_000_000, incremental=2_000_000)
TINY = Sizes(
    filled=(100, 1_000),
    stream=400,
    step=200,
    warm=200,
    rows=500,
    memory=2_000,
    slices=1,
    large=2_000,
    records=400,
    incremental=2_000,
    chunk=500,
    quiet=3,
    cold=800,
    folds=((1, 1_000, 10),),
    many=2,
    captured=3,
    days=1,
    seconds=90,  # It expects a thousand transactions, and a snapshot that a signal requests.
    followed=3,
    repeat=1,
)
