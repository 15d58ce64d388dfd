"""The real planner on the model: crashes anywhere, concurrent and late runs, subsets; no row is lost or duplicated."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mssql_cdc_tests.unit.plan.simulation import FencedRunError, World, lsn

TABLES = ("a", "b", "c")
ACTIONS = st.one_of(
    st.tuples(st.just("commit"), st.sampled_from(TABLES)),
    st.tuples(st.just("capture"), st.integers(1, 3)),
    st.tuples(st.just("start"), st.none() | st.frozensets(st.sampled_from(TABLES), min_size=1, max_size=2)),
    st.tuples(st.just("step"), st.integers(0, 2)),
    st.tuples(st.just("kill"), st.integers(0, 2)),
    st.tuples(st.just("forget"), st.none()),
)


def play(world: World, actions: list) -> None:
    """Execute the actions; up to three runs are active at once, regardless of pools."""
    runs: list = []
    for action, argument in actions:
        if action == "commit":
            world.commit(argument)
        elif action == "capture":
            world.capture(argument)
        elif action == "forget":
            world.cursor = type(world.cursor)()
        elif action == "start" and len(runs) < 3:
            decision = world.decide()
            if decision is not None:
                runs.append(world.run(decision, argument))
        elif action == "kill" and argument < len(runs):
            runs.pop(argument).close()
        elif action == "step" and argument < len(runs):
            try:
                next(runs[argument])
            except (StopIteration, FencedRunError):
                runs.pop(argument)
        world.check()


def finish(world: World) -> None:
    """Capture everything, then execute ranges until nothing is due."""
    world.capture(len(world.commits))
    world.cursor = type(world.cursor)()
    for _ in range(len(world.commits) + 3):
        decision = world.decide()
        if decision is None:
            break
        list(world.run(decision))
        world.check()


@pytest.mark.feature("STR-01", "STR-03")
@settings(max_examples=300, deadline=None)
@given(st.lists(ACTIONS, max_size=60), st.none() | st.integers(1, 3))
def test_runs_in_any_interleaving_neither_lose_nor_duplicate_rows(actions, max_rows):
    world = World(TABLES, max_rows=max_rows)
    play(world, actions)
    finish(world)
    for name in TABLES:
        assert world.logs[name].rows == [at for at, changed in world.commits if changed == name]
    if world.commits:
        assert world.cuts[-1] == world.captured == len(world.commits) + 1


def test_crash_between_two_tables_with_a_larger_retry_reads_only_what_is_missing():
    world = World(("a", "b"))
    for name in ("a", "b"):
        world.commit(name)
    world.capture(2)
    first = world.run(world.range())
    while next(first) != "committed":
        pass
    first.close()
    world.commit("b")
    world.commit("a")
    world.capture(2)
    world.cursor = type(world.cursor)()
    second = world.range()
    assert {s.table.name: s.from_ for s in second.slices} == {"a": lsn(3), "b": lsn(1)}
    list(world.run(second))
    world.check()
    assert world.logs["a"].rows == [2, 5]
    assert world.logs["b"].rows == [3, 4]


def test_late_run_is_fenced_and_adds_nothing():
    world = World(("a",))
    world.commit("a")
    world.capture(1)
    decision = world.range()
    late = world.run(decision)
    next(late)
    next(late)
    list(world.run(decision))
    with pytest.raises(FencedRunError):
        list(late)
    assert world.logs["a"].rows == [2]


def test_subset_run_advances_only_its_tables_and_makes_no_cut():
    world = World(("a", "b"))
    world.commit("a")
    world.commit("b")
    world.capture(2)
    list(world.run(world.range(), only=frozenset({"a"})))
    assert (world.position("a"), world.position("b"), world.cuts) == (3, 1, [])
