"""The file of figures keeps what was measured, and gives the tables of the documents."""

from __future__ import annotations

from pathlib import Path

from mssql_cdc_tests.benchmarks.figures_file import FiguresFile, markdown
from mssql_cdc_tests.benchmarks.goals import GOALS
from mssql_cdc_tests.benchmarks.measure import Figure
from mssql_cdc_tests.benchmarks.sizes import FULL


def test_a_part_that_is_run_again_replaces_its_figures_and_no_others(tmp_path: Path):
    file = FiguresFile(tmp_path / "figures.json")
    for part in ("start", "ticks", "ticks"):
        file.add(part, Figure(f"what {part} shows", 1, "s"))
    file.drop(["ticks"])
    file.add("ticks", Figure("what ticks shows", 2, "s", at_most=3, note="once"))
    found = file.read()
    assert [(one["part"], one["value"]) for one in found] == [("start", 1), ("ticks", 2)]
    keys = {"name", "value", "unit", "target", "bound", "holds", "part", "at"}
    assert [set(one) for one in found] == [keys, keys | {"note"}]
    assert [path.name for path in tmp_path.iterdir()] == ["figures.json"]


def test_the_tables_have_every_target_measured_or_not(tmp_path: Path):
    file = FiguresFile(tmp_path / "figures.json")
    file.add("changes", GOALS["log/fetch"].figure(0.61, FULL))
    file.add("changes", GOALS["log/debezium"].figure(5.2, FULL, note="Debezium once"))
    file.add("changes", Figure("something else", 12_345, "rows/s"))
    lines = list(markdown(file.read(), parts=["changes", "start"], sizes=FULL))
    date = file.read()[0]["at"].partition("T")[0]
    what = "| 3,000,000 change events (5,100,000 change rows) in 20 tables: "
    assert f"{what}change logs against the bare fetch | at least 0.5 x | 0.61 x | {date} |" in lines
    assert f"{what}change logs against Debezium | at least 6 x | 5.20 x ✗ | {date}; Debezium once |" in lines
    assert f"{what}current tables too, against Debezium | at least 4 x | still to be measured | |" in lines
    assert "| something else | 12,345 rows/s |  |" in lines
    assert sum("still to be measured" in line for line in lines) == 4
