"""Defects that the storm has to find: those of the review, put back into the product one at a time.

Each is a change of the text of one function. A text that no longer occurs fails, so that the table stays true.
"""

from __future__ import annotations
import __future__

import importlib
import inspect
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from mssql_cdc_tests.storm.patched import everywhere


@dataclass(frozen=True)
class Mutant:
    """A defect; `where` is `module:function` or `module:Class.method` below `mssql_cdc`.

    `rule` is the review's bug or the rule of docs/correctness.md that it breaks; `also` are further changes, where more
    than one line stands in its way.
    """

    rule: str
    what: str
    where: str
    old: str
    new: str
    also: tuple[tuple[str, str, str], ...] = ()

    @contextmanager
    def planted(self) -> Iterator[None]:
        """The product has the defect."""
        with ExitStack() as stack:
            for where, old, new in ((self.where, self.old, self.new), *self.also):
                stack.enter_context(_Change(self.rule, where, old, new).made())
            yield


@dataclass(frozen=True)
class _Change:
    rule: str
    where: str
    old: str
    new: str

    @contextmanager
    def made(self) -> Iterator[None]:
        module = importlib.import_module(f"mssql_cdc.{self.where.partition(':')[0]}")
        path = self.where.partition(":")[2].split(".")
        holder: Any = module if len(path) == 1 else getattr(module, path[0])
        original = inspect.getattr_static(holder, path[-1])
        changed = self._changed(module, original, path[-1])
        if holder is module:
            with everywhere(original, changed):
                yield
            return
        if hasattr(changed, "__set_name__"):
            changed.__set_name__(holder, path[-1])
        with patch.object(holder, path[-1], changed):
            yield

    def _changed(self, module: Any, original: Any, name: str) -> Any:
        function = getattr(original, "fget", None) or getattr(original, "func", None) or inspect.unwrap(original)
        source = textwrap.dedent(inspect.getsource(function))
        assert source.count(self.old) == 1, f"{self.where} does not hold {self.old!r} once"
        code = compile(
            source.replace(self.old, self.new),
            f"<mutant {self.rule}>",
            "exec",
            flags=__future__.annotations.compiler_flag,
            dont_inherit=True,
        )
        names: dict[str, Any] = {}
        space = vars(module)
        before = space.get(name)
        exec(code, space, names)  # noqa: S102 (the product's own text)
        assert space.get(name) is before
        return names[name]


_ANY_CONSTRAINT = (
    "schema.tables:UniqueKey.continues", "(not known or self.constraint == former.constraint)", "True",
)  # fmt: skip
"""Another constraint with the same definition is the same key: else it tells of the change by itself."""
MUTANTS = (
    Mutant(
        "1", "any later scan session proves that capture has passed a mark",
        "source.sqlserver.log_end:proven",
        "if later and scan.empty_scans >= before + 2:",
        "if later and (scan.session_id, scan.empty_scans) > (known.session_id, before):",
    ),
    Mutant(
        "words", "one empty scan proves a mark, though it may have begun before it",
        "source.sqlserver.log_end:proven", "before + 2", "before + 1",
    ),
    Mutant(
        "words", "a dummy row counts as captured",
        "capture.survey:_survey", "captured=source.standing.captured,", "captured=source.standing.maximum,",
    ),
    Mutant(
        "A8", "an idle table advances to the newest dummy row",
        "capture.survey:_survey", "settled=source.standing.settled,", "settled=source.standing.maximum,",
    ),
    Mutant(
        "1", "an idle table moves past what is proven",
        "plan.planner:_build", "scanned = to <= max(facts.captured, facts.scanned or facts.captured)",
        "scanned = True",
        also=(
            (
                "plan.planner:_next_range",
                "if (facts.scanned or facts.captured) >= reached and effect:",
                "if effect:",
            ),
        ),
    ),
    Mutant(
        "2", "any other instance continues",
        "plan.facts:Member.continues", "if instance.identity == self.read or", "if True or",
    ),
    Mutant(
        "2", "another instance continues although the one that was read is gone",
        "plan.facts:Member.continues", "return self.still_read and", "return",
    ),
    Mutant(
        "11", "a change log that a user restored is not noticed",
        "lake.tamper:verify_untouched", "if not ours and not is_harmless(operation):", "if False:",
    ),
    Mutant(
        "12", "a table that is no longer captured is not noticed",
        "capture.absent_tables:absent_tables", "    if own:", "    if False:",
    ),
    Mutant(
        "12", "a table that is no longer captured is not noticed while another one has its name",
        "capture.absent_tables:absent_tables", "in _under_former_names(database, offsets, history, shown, present):",
        "in ():",
    ),
    Mutant(
        "A7", "a restore to before the commits of a dead run is not noticed",
        "capture.source_history:restore_after_commits", "session.require_witness(witness)", "pass",
    ),
    Mutant(
        "A5", "a changed log that a snapshot finds after its survey counts as recorded",
        "capture.members:_as_judged", "replace(state, checked=judged)", "state",
    ),
    Mutant(
        "A5", "a requested snapshot of a changed log records no gap",
        "capture.snapshot.take:capture_snapshot",
        "note_tampered(database, (survey.tables[table] for table in tables), survey.facts.epoch)", "pass",
    ),
    Mutant(
        "A7", "a row that only repeats the position of a commit counts as its own",
        "capture.members:LakeTable.is_as_recorded", " and not self._has_unrecorded", "",
    ),
    Mutant(
        "A7", "commits without a row in `_offsets` are not looked up after a survey",
        "capture.source_history:witness_of", "restore_after_commits(session, offsets, tables)", "None",
    ),
    Mutant(
        "A7", "transactions that appear below what was captured are not noticed after a read",
        "capture.source_history:_require_nothing_between", "captured < witness.start_lsn <= scanned", "False",
    ),
    Mutant(
        "15", "a second snapshot of a table without a key doubles its rows",
        "check.story:log_start", "if facts.stopped is None:", "if facts.stopped is None and not start:",
    ),
    Mutant(
        "A1", "a table's position is that of the cut, not its own",
        "capture.members:LakeTable.reached", "known = [self.own(), self.entry.reached if self.entry else None]",
        "known = [self.entry.reached if self.entry else None]",
    ),
    Mutant(
        "A3", "commits carry no txn",
        "lake.log:_committed",
        "txns = {state.app_id: number, _counter(state.owner): number}", "txns = {}",
    ),
    Mutant(
        "A3", "offsets are appended although another run has written the table's entry",
        "lake.offset_commits:_check_own", "if changed:", "if False:",
    ),
    Mutant(
        "A4", "a retry ends below what a table has committed",
        "plan.planner:_next_range", "to = max([to, *(_at(m) for m in ready if _at(m) <= facts.captured)])", "pass",
    ),
    Mutant(
        "A6", "a resumed snapshot does not know its groups",
        "capture.snapshot.chunk_commits:groups_done", 'facts.get("snapshot") == snapshot', "False",
    ),
    Mutant(
        "A7", "no witness is checked",
        "capture.source_history:_require_history", "session.require_witness(offsets.witness)", "pass",
    ),
    Mutant(
        "A7", "transactions that appear below a complete cut are not noticed",
        "capture.source_history:_require_history", "session.require_complete(Lsn.parse(cut.to), cut.witness)", "pass",
    ),
    Mutant(
        "A7", "a restore after a snapshot's end is not noticed",
        "capture.source_history:_require_history", "offsets.unwitnessed_marks", "offsets.begun_marks",
    ),
    Mutant(
        "A7", "a restore during a snapshot is not noticed when it is resumed",
        "capture.source_history:_require_history", "offsets.unwitnessed_marks",
        "set(offsets.closed_tables.values())",
    ),
    Mutant(
        "A7", "a restore during a snapshot is not noticed at its end",
        "capture.snapshot.finish:require_history", "run.session.require_mark(begun)", "pass",
    ),
    Mutant(
        "A7", "a position of an earlier epoch counts",
        "capture.survey:_member", " and lake.entry.epoch == offsets.epoch", "",
    ),
    Mutant(
        "A7", "a restore records no gap for tables that were re-created or are not captured",
        "run.loss:_reached", "table in dict.fromkeys((*seen.tables, *names.values())):",
        "table in (m.table for m in seen.facts.members if m.position is not None):",
    ),
    Mutant(
        "A7", "a run of an earlier epoch writes offsets",
        "lake.offset_commits:_check_own", "if now.epoch > seen.epoch:", "if False:",
    ),
    Mutant(
        "A9", "the planner does not notice changes that were cleaned up",
        "plan.planner:_loss",
        "if not instance.min_lsn or follows or instance.min_lsn <= position.increment():",
        "if True:",
    ),
    Mutant(
        "A9", "tables without rows are not checked after the read",
        "capture.range:_check_quiet", "if o.error is None and not counts[o.slice.table]", "if False",
    ),
    Mutant(
        "A9", "gaps are not recorded",
        "lake.gaps:record_gaps", "return [gap for", "return [] and [gap for",
    ),
    Mutant(
        "A9", "a second loss after the same position is not recorded",
        "lake.gaps:record_gaps", "if gap.identity not in there or there[gap.identity] not in {None, gap.to}",
        "if gap.identity not in there",
    ),
    Mutant(
        "A9", "a gap ends at once, and not where its table streams again",
        "run.loss:write_loss", "one.position.text, None,", "one.position.text, one.position.text,",
        also=(("run.loss:write_restore", "at.to, None,", "at.to, at.to,"),),
    ),
    Mutant(
        "A9", "chunks whose changes were cleaned up count as read",
        "capture.snapshot.chunk_plan:remaining", "if _reaches(group.low, min_lsn)", "if True",
    ),
    Mutant(
        "B14", "a slice reads past the start of the next instance",
        "plan.planner:_clamp", "if later is not None and later.before is not None and _at(member) < later.before < to:",
        "if False:",
    ),
    Mutant(
        "B14", "the newest instance is read, whatever it holds",
        "plan.facts:Member.instance_at", "return usable[-1] if usable else next(iter(begun), None)",
        "return begun[-1] if begun else None",
    ),
    Mutant(
        "B15", "a re-created table continues as the former one",
        "capture.survey:_member", "lake.recreated or not known", "not known",
    ),
    Mutant(
        "B15", "the last changes of a dropped table are no gap",
        "capture.snapshot.begin:note_unread", "if reached is not None:", "if False:",
    ),
    Mutant(
        "C18", "the stream begins at the largest low mark of a snapshot",
        "capture.snapshot.chunk_plan:conclude", "min(group.low for", "max(group.low for",
    ),
    Mutant(
        "C18", "the stream begins at the snapshot, though its position was lower",
        "capture.snapshot.chunk_plan:conclude", "if plan.held is None or plan.held >= low:", "if True:",
    ),
    Mutant(
        "C18", "a snapshot's end is its start",
        "capture.snapshot.finish:end_table", "mark = marked(run.database, run.session)",
        "mark = min(run.offsets.begun_marks, key=lambda begun: begun.lsn)",
    ),
    Mutant(
        "C18", "a run that resumes a snapshot does not take it over",
        "capture.snapshot.begin:begin", "    if begun:\n", "    if False:\n",
    ),
    Mutant(
        "C18", "a run that was overtaken while it began a snapshot continues reading",
        "capture.snapshot.begin:begin", "    require_held(chosen.values(), offsets, database.offsets())\n", "",
    ),
    Mutant(
        "C18", "a group may be committed after the end of its snapshot",
        "capture.snapshot.finish:end_table", '_fence_groups(run, table, {"ended": True})', "pass",
    ),
    Mutant(
        "C18", "a table is merged before its stream has passed the end of its snapshot",
        "capture.current_tables:mergeable_batch", "if offsets.closed_until(table.text, entry):", "if False:",
    ),
    Mutant(
        "C18", "changes that were cleaned up during a snapshot are no gap",
        "capture.snapshot.finish:_record_gap", "if not ended.gap or table_plan.held is None:", "if True:",
    ),
    Mutant(
        "C18", "a complete cut opens tables that are not in it",
        "lake.offset_digest:Digest._ended",
        "one not in last or numbers[last[one]] <= end[0]", "not len(cuts) or numbers[cuts[-1]] <= end[0]",
    ),
    Mutant(
        "C18", "a bounded range opens tables whose changes it leaves unread",
        "plan.planner:_passed", "facts.captured is None or to < facts.captured", "False",
    ),
    Mutant(
        "C19", "rows of a chunk that is read again are not swept",
        "capture.snapshot.finish:_write_end", "again = table_plan.again or ended.again", "again = table_plan.again",
    ),
    Mutant(
        "C19", "a filtered snapshot repairs a table that lost changes",
        "capture.snapshot.statements:_must_be_whole", 'return "changes were lost"', "return None",
    ),
    Mutant(
        "C19", "a filtered snapshot is enough for a table that was re-created, or after a restore",
        "capture.snapshot.statements:_must_be_whole", "if held is None:", "if False:",
    ),
    Mutant(
        "C19", "a filtered snapshot is enough for a table that streamed before its last snapshot began",
        "capture.snapshot.statements:_must_be_whole", "known.entry.filled is None", "known.entry.to is None",
    ),
    Mutant(
        "C19", "a filtered snapshot is enough for a table without a key that is in the lake",
        "capture.snapshot.statements:_must_be_whole",
        "if not known.captured.newest.schema.key_columns:", "if False:",
    ),
    Mutant(
        "C19", "a filtered snapshot is enough for changes that were cleaned up while it was read",
        "capture.snapshot.finish:end_table", "if outcome.gap and table_plan.select is not None:", "if False:",
    ),
    Mutant(
        "C19", "rows that a filter leaves out are swept",
        "capture.snapshot.finish:_write_end", " and (table_plan.select is None or table_plan.held is None)", "",
    ),
    Mutant(
        "C19", "rows deleted between two reads of a filtered snapshot are not swept",
        "capture.snapshot.finish:_write_end", "(table_plan.select is None or table_plan.held is None)",
        "table_plan.select is None",
    ),
    Mutant(
        "C21", "a table without a key is not read again",
        "capture.snapshot.chunk_groups:read_locked_tables",
        "if minimum is None or not remaining(table_plan, run.done[table], minimum):",
        "if minimum is None or not table_plan.locked or run.done[table]:",
    ),
    Mutant(
        "C19", "rows of an incremental snapshot of an idle database are swept",
        "capture.incremental.chunks:open_table",
        "min(_low_mark(session, table)[0], table.position)", "_low_mark(session, table)[0]",
    ),
    Mutant(
        "C", "emitted rows are in no cut while a table that was never opened is lost",
        "capture.incremental.emission:record",
        "for name, found in entries.items())", "for name, found in known.items())",
    ),
    Mutant(
        "C", "rows that have changed since they were staged are emitted",
        "capture.incremental.emission:_rows", "key not in touched for key in own", "True for key in own",
    ),
    Mutant(
        "C", "chunks are emitted before the stream has passed their end",
        "capture.incremental.emission:passed_groups", "if position < group.mark.lsn:", "if False:",
    ),
    Mutant(
        "C", "staged chunks are kept after the stream breaks off",
        "capture.incremental.emission:is_stale", "return broken or", "return",
    ),
    Mutant(
        "C", "chunks that a killed run has emitted are emitted again",
        "follow.incremental_step:Step._emit", "found = emission.caught_up(reading, log)", "found = reading",
    ),
    Mutant(
        "C", "an incremental snapshot continues reading during a pause",
        "follow.incremental_step:Step._read", "if self.store.state.paused or reading.is_read", "if reading.is_read",
    ),
    Mutant(
        "C18", "a snapshot that another run has overtaken continues with its old plan",
        "capture.snapshot.begin:_still_holds", "survey.offsets.is_in(snapshot, known.table.text) and ", "",
    ),
    Mutant(
        "B15", "an object id of an earlier epoch identifies a renamed table",
        "lake.offset_digest:Digest.read_in", " if met == epoch", "",
    ),
    Mutant(
        "A4", "a bounded range ends at the log's end at which a table was read whole",
        "capture.survey:_bounded", "(_reaching(session, facts, bound) for bound in", "(bound for bound in",
    ),
    Mutant(
        "A7", "the witness of a range may come from another history than the surveyed one",
        "capture.source_history:witness_of", "_require_same_history(session, offsets, facts)", "pass",
        also=((
            "lake.offset_digest:_furthest",
            "found is not None and (known is None or found.start_lsn >= known.start_lsn)", "found is not None",
        ),),
    ),
    Mutant(
        "24", "a table that is renamed is found by its name only",
        "capture.members:_entry_of", "offsets.entry_of(table.table_id.text, table.object_id)", "None",
    ),
    Mutant(
        "25", "no cut names a table that is tried again",
        "plan.planner:_next_range", "any(m.revived or _at(m) < reached for m in ready)",
        "any(_at(m) < reached for m in ready)",
        also=((
            "run.follower:Follower._tried", "(self._given_up or set()).difference(tables)", "set()",
        ),),
    ),
    Mutant(
        "25", "a planned snapshot leaves out a table that was given up",
        "capture.snapshot.take:_has_another", 'status in {"snapshot", "streaming"}', 'status != "new"',
    ),
    Mutant(
        "25", "a table that was given up stays given up at the next start",
        "capture.survey:_member", 'revived = retries and status == "failed"', "revived = False",
    ),
)  # fmt: skip
"""The defects that the model can show."""

WHOLE_MUTANTS = (
    Mutant(
        "3, 4", "rows are read with a structure that the change table no longer has",
        "source.sqlserver.structure:Structure.require_columns",
        "self._require_column(column, found.get(column.name))", "pass",
        also=((
            "source.sqlserver.columns:_text",
            "str(length + 1))} AS varbinary({2 * length + 2})", "str(length))} AS varbinary({2 * length})",
        ),),
    ),
    Mutant(
        "5", "a changed key is not noticed",
        "plan.planner:_snapshot", "m.rekeyed and follows", "False",
    ),
    Mutant(
        "6", "a structure that returns gets its former version",
        "lake.history:SchemaHistory.match", "known = self.newest(schema.table_id)",
        "found = self.versions.get(schema.table_id.text, ())\n"
        "    known = next((one for one in found if one.same_structure(schema)), None)",
        also=(_ANY_CONSTRAINT,),
    ),
    Mutant(
        "7", "a schema change takes over what another run committed meanwhile",
        "lake.evolution:evolve", 'if committer == "deltalake" and moved:', "if False:",
    ),
    Mutant(
        "14", "the type of a key column is not part of the key",
        "schema.tables:TableSchema.key_definition", "(column.name, column.type)", "(column.name, self.columns[0].type)",
        also=(_ANY_CONSTRAINT,),
    ),
    Mutant(
        "19", "a column of another type continues in the former one's Delta column",
        "lake.delta_columns:_Home.fits", "has.equals(wanted) or", "True or",
    ),
    Mutant(
        "C19", "rows that were deleted while capture was off are not swept",
        "capture.snapshot.finish:_write_end", "again = table_plan.again or ended.again", "again = False",
    ),
    Mutant(
        "SNP-28", "a snapshot that another run continues is not open",
        "records.known_snapshots:known_snapshots", 'status == "snapshot" and not number', "False",
    ),
)  # fmt: skip
"""Those that take types, keys, current tables or records to show. docs/correctness.md lists the others, with tests."""
