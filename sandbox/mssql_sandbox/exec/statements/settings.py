"""DECLARE, SET and USE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mssql_sandbox.engine.events import EnvChange, Message
from mssql_sandbox.engine.product import refuse_use
from mssql_sandbox.errors import SqlError, error
from mssql_sandbox.exec.compiler import Compiler
from mssql_sandbox.exec.expressions.base import coerce, require_implicit
from mssql_sandbox.exec.flow import Steps
from mssql_sandbox.exec.options import FLAGS
from mssql_sandbox.exec.routine import Frame
from mssql_sandbox.exec.security import user_of
from mssql_sandbox.exec.session_state import SessionState
from mssql_sandbox.exec.transactions import LEVELS
from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st


def _declare(frame: Frame, node: st.Declare) -> Steps:
    for declaration in node.variables:
        if declaration.default is not None:
            yield from _assign(frame, declaration, declaration.name, declaration.default)
    return None


def _declare_table(_frame: Frame, _node: st.DeclareTable) -> Steps:
    return None
    yield


def _set_variable(frame: Frame, node: st.SetVariable) -> Steps:
    value = node.value
    if node.operator != "=":
        value = ast.Binary(node.operator[:-1], ast.Variable(node.name), value)
    yield from _assign(frame, node, node.name, value)
    return None


def _assign(frame: Frame, key: Any, name: str, value: ast.Expression) -> Steps:
    """Set a variable to the value of an expression, which may read tables."""

    def build(compiler: Compiler) -> tuple[int, Callable[..., Any], bool]:
        slot = compiler.variables.scalar(name)
        if slot.cursor:
            source = compiler.variables.scalar(value.name) if isinstance(value, ast.Variable) else None
            if source is None:
                raise error(137, name=name)
            return slot.place, lambda _row, context: context.values[source.place], False
        assert slot.type is not None
        expr = compiler.value(value)
        if not expr.null:
            require_implicit(expr.type, slot.type)
        return slot.place, coerce(expr, slot.type).fn, compiler.reads_tables

    place, fn, reads = frame.compiled(key, build)
    if reads:
        frame.values[place] = yield from frame.session.transactions.run(lambda tx: fn((), frame.context(tx)))
    else:
        frame.values[place] = fn((), frame.context(frame.session.transactions.current))
    return None


def _set_isolation(frame: Frame, node: st.SetIsolation) -> Steps:
    frame.session.transactions.set_isolation(LEVELS[node.level])
    return None
    yield


def _set_identity_insert(frame: Frame, node: st.SetIdentityInsert) -> Steps:
    session = frame.session
    table = frame.compiled(node, lambda compiler: compiler.names.table(node.table))
    if not node.on:
        session.identity_insert = None
        return None
    if table.identity is None:
        raise error(8106, table=table.full_name)
    active = session.identity_insert
    if active is not None and active is not table:
        raise SqlError(8107, f"IDENTITY_INSERT is already ON for table '{active.long_name}'. Cannot perform SET "
                       f"operation for table '{table.full_name}'.")  # fmt: skip
    session.identity_insert = table
    return None
    yield


def _set_option(frame: Frame, node: st.SetOption) -> Steps:
    session = frame.session
    value = node.value if isinstance(node.value, str) else frame.evaluate(node.value)
    before = session.options.compiled_in()
    for name in node.names:
        set_option(session, name, value)
    if session.options.compiled_in() != before:
        session.routines.clear()
        frame.routine.plans.clear()
    return None
    yield


def set_option(session: SessionState, name: str, value: Any) -> None:
    """Set one option; 195 for an unknown one."""
    options = session.options
    if name in FLAGS:
        if value not in ("ON", "OFF"):
            raise error(102, near=value)
        setattr(options, FLAGS[name][0], value == "ON")
        return
    setter = _VALUES.get(name)
    if setter is not None:
        setter(session, value)
        return
    if name in _ACCEPTED or name.startswith("STATISTICS "):
        options.others[name] = str(value)
        return
    raise error(195, name=name, kind="SET option")


def _ansi_defaults(session: SessionState, value: Any) -> None:
    for name in ("ANSI_NULLS", "ANSI_PADDING", "ANSI_WARNINGS", "QUOTED_IDENTIFIER", "ANSI_NULL_DFLT_ON",
                 "IMPLICIT_TRANSACTIONS", "CURSOR_CLOSE_ON_COMMIT"):  # fmt: skip
        set_option(session, name, value)


def _number(attribute: str) -> Callable[[SessionState, Any], None]:
    def set_(session: SessionState, value: Any) -> None:
        setattr(session.options, attribute, int(value))

    return set_


def _date_first(session: SessionState, value: Any) -> None:
    number = int(value)
    if not 1 <= number <= 7:
        raise SqlError(2744, f"The value {number} is not a valid DATEFIRST setting; expected 1 to 7.")
    session.options.date_first = number


def _date_format(_session: SessionState, value: Any) -> None:
    if str(value).lower() != "mdy":
        raise SqlError(2741, f"SET DATEFORMAT date order '{value}' is invalid: this server reads dates as mdy only.")


def _language(session: SessionState, value: Any) -> None:
    if str(value).lower() not in ("us_english", "english"):
        raise SqlError(
            2740, f"SET LANGUAGE failed because '{value}' is not an official language name or a language alias on this "
            "server: it knows us_english only."
        )  # fmt: skip
    old = session.options.language
    session.options.language = str(value)
    session.options.date_first = 7
    session.pending.append(EnvChange("language", new=str(value), old=old))
    session.pending.append(Message(5703, 1, 10, f"Changed language setting to {value}."))


def _deadlock_priority(session: SessionState, value: Any) -> None:
    words = {"LOW": -5, "NORMAL": 0, "HIGH": 5}
    text = str(value).upper()
    session.options.deadlock_priority = words[text] if text in words else int(value)


def _context_info(session: SessionState, value: Any) -> None:
    session.context_info = value if isinstance(value, bytes) else str(value).encode()


_VALUES: dict[str, Callable[[SessionState, Any], None]] = {
    "LOCK_TIMEOUT": _number("lock_timeout"),
    "ROWCOUNT": _number("row_limit"),
    "TEXTSIZE": _number("text_size"),
    "DATEFIRST": _date_first,
    "DATEFORMAT": _date_format,
    "LANGUAGE": _language,
    "DEADLOCK_PRIORITY": _deadlock_priority,
    "CONTEXT_INFO": _context_info,
    "ANSI_DEFAULTS": _ansi_defaults,
}
_ACCEPTED = frozenset(
    {"ANSI_NULL_DFLT_OFF", "FORCEPLAN", "SHOWPLAN_ALL", "SHOWPLAN_TEXT", "SHOWPLAN_XML", "QUERY_GOVERNOR_COST_LIMIT",
     "REMOTE_PROC_TRANSACTIONS", "FIPS_FLAGGER", "OFFSETS", "DISABLE_DEF_CNST_CHK"}
)  # fmt: skip


def _use(frame: Frame, node: st.Use) -> Steps:
    """USE: 911 for an unknown database, 916 if the login has no user."""
    session = frame.session
    database = session.server.databases.get(node.database)
    if database is None:
        raise error(911, name=node.database)
    if database.options.state != "ONLINE":
        raise error(942, name=database.name)
    if database is not session.current_database:
        refuse_use(session.server.version)
    if user_of(session, database) is None:
        raise error(916, login=session.login, database=database.name)
    old, session.current_database = session.current_database.name, database
    yield EnvChange("database", new=database.name, old=old)
    yield Message(5701, 2, 10, f"Changed database context to '{database.name}'.")
    return None


HANDLERS: dict[type, Callable[[Frame, Any], Steps]] = {
    st.Declare: _declare,
    st.DeclareTable: _declare_table,
    st.SetVariable: _set_variable,
    st.SetIsolation: _set_isolation,
    st.SetIdentityInsert: _set_identity_insert,
    st.SetOption: _set_option,
    st.Use: _use,
}
