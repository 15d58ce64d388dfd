"""Expressions back to text, in the form in which the server stores defaults, checks and computed columns.

Names in brackets, numbers in parentheses, operators in parentheses: `a + 1` is `[a]+(1)`. The outermost parentheses are
up to the caller.
"""

from __future__ import annotations

from mssql_sandbox.tsql import ast


def render(node: ast.Expression) -> str:
    """The stored text of an expression."""
    return _render(node)


def _quoted(text: object) -> str:
    return "'" + str(text).replace("'", "''") + "'"


def _name(parts: ast.Name) -> str:
    return ".".join("[" + part.replace("]", "]]") + "]" for part in parts)


def _literal(node: ast.Literal) -> str:
    if node.kind == "null":
        return "NULL"
    if node.kind == "string":
        return _quoted(node.value)
    if node.kind == "nstring":
        return "N" + _quoted(node.value)
    if node.kind == "binary":
        assert isinstance(node.value, bytes)
        return f"0x{node.value.hex().upper()}"
    if node.kind == "money":
        return f"(${node.value})"
    if node.kind == "float":
        return f"({node.value:.15e})" if node.value else "(0.000000000000000e+000)"
    return f"({node.value})"


def _type(node: ast.TypeName) -> str:
    name = f"[{node.name[-1].lower()}]"
    if not node.arguments:
        return name
    return f"{name}({','.join('max' if argument == -1 else str(argument) for argument in node.arguments)})"


def _call(node: ast.Function) -> str:
    name = node.name[0].lower() if len(node.name) == 1 else _name(node.name)
    if name == "current_timestamp":
        return "getdate()"
    if name in ("current_user", "session_user", "system_user", "user"):
        return {"current_user": "user_name()", "session_user": "user_name()", "user": "user_name()"}.get(
            name, "suser_sname()"
        )
    arguments = ["*"] if node.star else [_argument(argument) for argument in node.arguments]
    return f"{name}({','.join(arguments)})"


def _argument(node: ast.Expression) -> str:
    return (
        node.parts[0]
        if isinstance(node, ast.ColumnRef) and len(node.parts) == 1 and node.parts[0].lower() in _PARTS
        else _render(node)
    )


_PARTS = frozenset(
    [
        "year",
        "yy",
        "yyyy",
        "quarter",
        "qq",
        "q",
        "month",
        "mm",
        "m",
        "dayofyear",
        "dy",
        "y",
        "day",
        "dd",
        "d",
        "week",
        "wk",
        "ww",
        "weekday",
        "dw",
        "hour",
        "hh",
        "minute",
        "mi",
        "n",
        "second",
        "ss",
        "s",
        "millisecond",
        "ms",
        "microsecond",
        "mcs",
        "nanosecond",
        "ns",
        "tzoffset",
        "tz",
        "iso_week",
    ]
)


def _render(node: ast.Expression) -> str:  # noqa: C901 - one case per kind of node
    if isinstance(node, ast.Literal):
        return _literal(node)
    if isinstance(node, ast.ColumnRef):
        return _name(node.parts)
    if isinstance(node, ast.Function):
        return _call(node)
    if isinstance(node, ast.Unary):
        return f"{node.operator}{_render(node.operand)}"
    if isinstance(node, ast.Binary):
        return f"{_operand(node.left)}{node.operator}{_operand(node.right)}"
    if isinstance(node, ast.Comparison):
        return f"{_operand(node.left)}{node.operator}{_operand(node.right)}"
    if isinstance(node, ast.Logical):
        return f" {node.operator} ".join(_operand(operand) for operand in node.operands)
    if isinstance(node, ast.Not):
        return f"NOT {_operand(node.operand)}"
    if isinstance(node, ast.IsNull):
        return f"{_operand(node.operand)} IS {'NOT ' if node.negated else ''}NULL"
    if isinstance(node, ast.Like):
        escape = f" ESCAPE {_render(node.escape)}" if node.escape is not None else ""
        return f"{_operand(node.operand)} {'NOT ' if node.negated else ''}like {_render(node.pattern)}{escape}"
    if isinstance(node, ast.Between):
        inside = f"{_operand(node.operand)}>={_render(node.low)} AND {_operand(node.operand)}<={_render(node.high)}"
        return f"NOT ({inside})" if node.negated else inside
    if isinstance(node, ast.In) and node.query is None:
        either = " OR ".join(f"{_operand(node.operand)}={_render(item)}" for item in reversed(node.items))
        return f"NOT ({either})" if node.negated else either
    if isinstance(node, ast.Case):
        return _case(node)
    if isinstance(node, ast.Cast):
        return _cast(node)
    if isinstance(node, ast.Collate):
        return f"{_render(node.operand)} collate {node.collation}"
    if isinstance(node, ast.NextValueFor):
        return f"NEXT VALUE FOR {_name(node.sequence)}"
    if isinstance(node, ast.AtTimeZone):
        return f"{_render(node.operand)} AT TIME ZONE {_render(node.zone)}"
    raise TypeError(f"{type(node).__name__} cannot be stored in a constraint or computed column")


def _operand(node: ast.Expression) -> str:
    text = _render(node)
    return f"({text})" if isinstance(node, (ast.Binary, ast.Logical, ast.Case)) else text


def _case(node: ast.Case) -> str:
    parts = ["case"]
    if node.operand is not None:
        parts.append(_render(node.operand))
    parts += [f"when {_render(when)} then {_render(then)}" for when, then in node.whens]
    if node.otherwise is not None:
        parts.append(f"else {_render(node.otherwise)}")
    return " ".join([*parts, "end"])


def _cast(node: ast.Cast) -> str:
    prefix = "TRY_" if node.try_ else ""
    style = f",{_render(node.style)}" if node.style is not None else ""
    return f"{prefix}CONVERT({_type(node.type)},{_render(node.operand)}{style})"
