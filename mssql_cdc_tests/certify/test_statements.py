"""The connector's statements on a real SQL Server: seeks, no scans or sorts, no escalated locks, few cached plans.

The sandbox has no plans: there, the work is done and every kind of statement must be among those that are examined.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from mssql_cdc_tests.certify.plans import Finding, findings
from mssql_cdc_tests.certify.work import KINDS, TABLES, Work, worked
from mssql_cdc_tests.end_to_end.kit import open_place
from mssql_cdc_tests.servers import open_server

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def work(spark: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Work]:
    folder = tmp_path_factory.mktemp("certify")
    with (
        open_server(folder) as server,
        open_place(server, folder, server.database(next(_NUMBERS))) as place,
        worked(place, spark) as done,
    ):
        yield done


@pytest.fixture
def planned(work: Work) -> Work:
    """The work on a server that shows plans."""
    if not work.shows_plans:
        pytest.skip("the server shows no plans: it is a sandbox")
    return work


@pytest.mark.parametrize(("part", "piece"), [(part, piece) for part, pieces in KINDS.items() for piece in pieces])
def test_every_kind_of_statement_is_among_those_that_are_examined(work: Work, part: str, piece: str):
    assert [text for text in work.statements[part] if piece in text]


def test_a_statement_belongs_to_the_parts_that_have_executed_it(work: Work):
    """Each part's statements are in the cache from then on, so that a later one would seem to execute all of them."""
    compares = KINDS["check"][0]
    assert not [text for text in work.statements["ranges"] if compares in text]
    for name, action in {"nothing": lambda: None, "check again": lambda: work.command("check")}.items():
        work.part(name, action)
        assert bool([text for text in work.statements[name] if compares in text]) is (name == "check again")


def test_no_statement_scans_or_sorts_a_table_that_grows(planned: Work):
    keyed = frozenset(f"dbo.{name}" for name in TABLES)
    found: dict[str, list[Finding]] = {}
    for text, plan in planned.plans().items():
        if one := findings(plan, keys=keyed):
            found[text] = one
    assert found == {}


@pytest.mark.parametrize("part", [part for part in KINDS if not part.startswith("ranges")])
def test_reading_escalates_no_lock_to_a_table(planned: Work, part: str):
    before, after = planned.escalated[part]
    assert after == before


@pytest.mark.parametrize("mode", ["direct", "function"])
def test_further_ranges_add_no_plans(planned: Work, mode: str):
    planned.configure(data_query_mode=mode)
    planned.ranges(1)
    before = set(planned.plans())
    planned.ranges(3)
    assert set(planned.plans()) - before == set()
