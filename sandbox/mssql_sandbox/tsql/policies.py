"""CREATE and ALTER SECURITY POLICY [doc]; BLOCK predicates and ALTER of a predicate are refused."""

from __future__ import annotations

from mssql_sandbox.tsql import ast
from mssql_sandbox.tsql import statements as st
from mssql_sandbox.tsql.documents import DocumentParser


def security_policy(parser: DocumentParser, line: int, *, alter: bool) -> st.Statement:
    """POLICY name predicates [WITH (options)] [NOT FOR REPLICATION]; CREATE or ALTER SECURITY has been read."""
    parser.expect("POLICY")
    name = parser.name()
    bracketed = alter and parser.accept("(")
    predicates: list[st.SecurityPredicate] = []
    while parser.text in ("ADD", "ALTER", "DROP"):
        predicates.append(_predicate(parser))
        parser.accept(",")
    if bracketed:
        parser.expect(")")
    if not predicates and not alter:
        parser.fail()
    options = _options(parser)
    replicated = not parser.accept("NOT", "FOR", "REPLICATION")
    enabled = options.get("STATE", None if alter else True)
    bound = options.get("SCHEMABINDING", True)
    return st.SecurityPolicy(name, alter, tuple(predicates), enabled, bound, replicated, line=line)


def _predicate(parser: DocumentParser) -> st.SecurityPredicate:
    action = parser.expect_one("ADD", "ALTER", "DROP")
    kind = parser.expect_one("FILTER", "BLOCK")
    if kind == "BLOCK" or action == "ALTER":
        raise parser.unsupported(f"{action} {kind} PREDICATE")
    parser.expect("PREDICATE")
    if action == "DROP":
        parser.expect("ON")
        return st.SecurityPredicate("drop", parser.name())
    function = parser.name()
    arguments = parser.call_arguments()
    parser.expect("ON")
    one = ast.Select((ast.SelectItem(ast.Literal(1, "int")),), source=ast.FunctionTable(function, arguments))
    return st.SecurityPredicate("add", parser.name(), function, arguments, ast.Exists(ast.Query(one)))


def _options(parser: DocumentParser) -> dict[str, bool]:
    found: dict[str, bool] = {}
    if parser.accept("WITH", "("):
        while not parser.accept(")"):
            option = parser.expect_one("STATE", "SCHEMABINDING")
            parser.expect("=")
            found[option] = parser.expect_one("ON", "OFF") == "ON"
            parser.accept(",")
    return found
