"""The functions of XQuery that the server has: how many arguments they take, and what they do with sequences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from mssql_sandbox.engine.xml.atomics import Atomic, Item, Untyped, atomized, compare, number_of, shown
from mssql_sandbox.engine.xml.tree import Attribute, Element, Instruction, Node

Items = list[Item]


@dataclass(frozen=True, slots=True)
class Function:
    """A function; `call` takes the sequences of its arguments. `single`: each may hold one item at most.

    Those that need the focus (position, last, and what stands for `.`) are the evaluator's own: `call` is None.
    """

    arity: tuple[int, int]
    call: Callable[..., Items] | None
    single: bool = True


def truth(items: Items) -> bool:
    """The effective boolean value of a sequence."""
    if not items:
        return False
    first = items[0]
    if isinstance(first, Node):
        return True
    return first != "" if isinstance(first, str) else bool(first)


def text_of(items: Items) -> str:
    """The only item as text; nothing is an empty text."""
    return shown(atomized(items[0])) if items else ""


def _numbers(items: Items) -> list[Decimal | float]:
    """The items as numbers: untyped values are xs:double, what is no number is left out."""
    found = []
    for item in items:
        value = atomized(item)
        number = number_of(value)
        if number is not None:
            found.append(float(number) if isinstance(value, Untyped) else number)
    return [float(number) for number in found] if any(isinstance(n, float) for n in found) else found


def _extreme(sign: str) -> Callable[[Items], Items]:
    def found(items: Items) -> Items:
        values: list[Atomic] = [atomized(item) for item in items]
        if values and all(isinstance(value, Untyped) for value in values) and len(_numbers(items)) == len(values):
            values = [*_numbers(items)]
        best: list[Atomic] = values[:1]
        for value in values[1:]:
            if compare(sign, value, best[0]):
                best = [value]
        return list(best)

    return found


def _average(items: Items) -> Items:
    numbers: list[Any] = _numbers(items)
    return [sum(numbers) / len(numbers)] if numbers else []


def _sum(items: Items) -> Items:
    numbers: list[Any] = _numbers(items)
    return [sum(numbers) if numbers else Decimal(0)]


def _distinct(items: Items) -> Items:
    found: list[Atomic] = []
    for item in items:
        value = atomized(item)
        if not any(compare("=", value, other) for other in found):
            found.append(value)
    return list(found)


def _rounded(apply: Callable[[Decimal], Decimal]) -> Callable[[Items], Items]:
    def result(items: Items) -> Items:
        numbers = _numbers(items[:1])
        if not numbers:
            return []
        value = apply(Decimal(str(numbers[0])))
        return [float(value) if isinstance(numbers[0], float) else value]

    return result


def _substring(text: Items, start: Items, length: Items | None = None) -> Items:
    first = int(_rounded(_half_up)(start)[0]) if start else 1  # type: ignore[arg-type]
    whole = text_of(text)
    stop = len(whole) + 1
    if length is not None:
        counted = _rounded(_half_up)(length)
        stop = first + int(counted[0]) if counted else first  # type: ignore[arg-type]
    return [whole[max(first, 1) - 1 : max(stop - 1, 0)]]


def _half_up(value: Decimal) -> Decimal:
    return (value + Decimal("0.5")).to_integral_value(ROUND_FLOOR)


def _name_part(part: str) -> Callable[[Items], Items]:
    def found(items: Items) -> Items:
        node = items[0] if items else None
        if isinstance(node, Instruction):
            return [node.target if part == "local" else ""]
        return [getattr(node.name, part) if isinstance(node, (Element, Attribute)) else ""]

    return found


def _number(items: Items) -> Items:
    numbers = _numbers(items[:1])
    return [float(numbers[0])] if numbers else [float("nan")]


FUNCTIONS: dict[str, Function] = {
    "position": Function((0, 0), None),
    "last": Function((0, 0), None),
    "true": Function((0, 0), lambda: [True]),
    "false": Function((0, 0), lambda: [False]),
    "not": Function((1, 1), lambda items: [not truth(items)], single=False),
    "count": Function((1, 1), lambda items: [Decimal(len(items))], single=False),
    "empty": Function((1, 1), lambda items: [not items], single=False),
    "data": Function((1, 1), lambda items: [atomized(item) for item in items], single=False),
    "distinct-values": Function((1, 1), _distinct, single=False),
    "sum": Function((1, 1), _sum, single=False),
    "avg": Function((1, 1), _average, single=False),
    "min": Function((1, 1), _extreme("<"), single=False),
    "max": Function((1, 1), _extreme(">"), single=False),
    "string": Function((0, 1), lambda items: [text_of(items)]),
    "number": Function((0, 1), _number),
    "local-name": Function((0, 1), _name_part("local")),
    "namespace-uri": Function((0, 1), _name_part("space")),
    "concat": Function((2, 99), lambda *parts: ["".join(text_of(part) for part in parts)]),
    "contains": Function((2, 2), lambda a, b: [text_of(b) in text_of(a)]),
    "substring": Function((2, 3), _substring),
    "string-length": Function((0, 1), lambda items: [Decimal(len(text_of(items)))]),
    "upper-case": Function((1, 1), lambda items: [text_of(items).upper()]),
    "lower-case": Function((1, 1), lambda items: [text_of(items).lower()]),
    "round": Function((1, 1), _rounded(_half_up)),
    "floor": Function((1, 1), _rounded(lambda value: value.to_integral_value(ROUND_FLOOR))),
    "ceiling": Function((1, 1), _rounded(lambda value: value.to_integral_value(ROUND_CEILING))),
}
