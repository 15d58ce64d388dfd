"""Parsing of paths and of what they begin with: steps, literals, variables, calls, computed constructors."""

from __future__ import annotations

import re
from decimal import Decimal

from mssql_sandbox.engine.xml import syntax as x
from mssql_sandbox.engine.xml.constructors import ConstructorParser
from mssql_sandbox.engine.xml.functions import FUNCTIONS
from mssql_sandbox.engine.xml.scanner import FN, XS

_AXES = ("child", "descendant-or-self", "descendant", "parent", "self", "attribute")
_UNKNOWN_AXES = (
    "ancestor-or-self", "ancestor", "following-sibling", "following", "preceding-sibling", "preceding", "namespace",
)  # fmt: skip
_KINDS = ("text", "node", "comment", "processing-instruction", "element", "attribute")
_COMPUTED = re.compile(r"(?:(element|attribute)\s+([\w.\-]+(?::[\w.\-]+)?)|text)\s*\{")
_SELF = re.compile(r"\.(?![.\d])")
_ANY = x.NodeTest("node")


class PathParser(ConstructorParser):
    """Adds paths."""

    def single(self) -> x.Expr:
        """An expression without commas (given by `QueryParser`)."""
        raise NotImplementedError

    # ---- paths -------------------------------------------------------------------------------------------

    def followed_by(self, sign: str) -> bool:
        """Whether a sign stands behind the next word."""
        before = self.place
        self.blank()
        self.local_name()
        found = self.at(sign)
        self.place = before
        return found

    def path(self) -> x.Expr:
        """Steps between slashes."""
        if self.accept("//"):
            found = self._step(x.Step(x.Root(), "descendant-or-self", _ANY))
        elif self.accept("/"):
            found = self._step(x.Root()) if self._at_step() else x.Root()
        else:
            found = self._step(None)
        while True:
            if self.accept("//"):
                found = self._step(x.Step(found, "descendant-or-self", _ANY))
            elif self.accept("/"):
                found = self._step(found)
            else:
                return found

    def _at_step(self) -> bool:
        self.blank()
        rest = self.text[self.place : self.place + 1]
        return rest.isalpha() or rest in ("_", "@", "*", ".", "(")

    def _step(self, source: x.Expr | None) -> x.Expr:
        """One step; without a source the first one, which may be any primary expression."""
        primary = self._primary(source)
        if primary is not None:
            predicates = self._predicates()
            inner = x.Filtered(primary, predicates) if predicates else primary
            return inner if source is None else x.Mapped(source, inner)
        axis, test = self._axis_and_test()
        return x.Step(x.ContextItem() if source is None else source, axis, test, self._predicates())  # type: ignore[arg-type]

    def _predicates(self) -> tuple[x.Expr, ...]:
        found = []
        while self.accept("["):
            found.append(self.expression())
            self.expect("]")
        return tuple(found)

    def _axis_and_test(self) -> tuple[str, x.NodeTest]:
        if self.accept(".."):
            return "parent", _ANY
        if self.accept("@"):
            return "attribute", self._test(attribute=True)
        for axis in _UNKNOWN_AXES:
            if self.accept(f"{axis}::"):
                self.unknown(axis)
        for axis in _AXES:
            if self.accept(f"{axis}::"):
                return axis, self._test(attribute=axis == "attribute")
        test = self._test(attribute=False)
        return ("attribute" if test.kind == "attribute" else "child"), test

    def _test(self, *, attribute: bool) -> x.NodeTest:
        kind = "attribute" if attribute else "element"
        if self.accept("*"):
            if self.accept(":"):
                return x.NodeTest(kind, None, self.local_name() or self.fail())  # type: ignore[arg-type]
            return x.NodeTest(kind)  # type: ignore[arg-type]
        for word in _KINDS:
            if self.at_word(word) and self.followed_by("("):
                self.expect_word(word)
                self.expect("(")
                self.accept("*")
                self.expect(")")
                return x.NodeTest(word)  # type: ignore[arg-type]
        self.blank()
        first = self.local_name()
        if not first:
            self.fail()
        if self.text.startswith(":*", self.place):
            self.place += 2
            return x.NodeTest(kind, self.space(first), None)  # type: ignore[arg-type]
        if self.text.startswith(":", self.place) and not self.text.startswith("::", self.place):
            self.place += 1
            return x.NodeTest(kind, self.space(first), self.local_name() or self.fail())  # type: ignore[arg-type]
        return x.NodeTest(kind, "" if attribute else self.spaces.get("", ""), first)  # type: ignore[arg-type]

    def _primary(self, source: x.Expr | None) -> x.Expr | None:
        """A literal, variable, parenthesis, call or constructor; None where a step stands."""
        self.blank()
        sign = self.text[self.place : self.place + 1]
        if sign == "(":
            self.place += 1
            inner = x.Sequence(()) if self.at(")") else self.expression()
            self.expect(")")
            return inner
        if _SELF.match(self.text, self.place) is not None:
            self.place += 1
            return x.ContextItem()
        if source is not None:
            return self._call()
        if sign in ("'", '"'):
            return x.Constant(self.string())
        if sign == "$":
            self.place += 1
            return x.VariableReference(self.name()[1])
        if sign == "<":
            return self.constructor()
        number = self.number()
        if number:
            return x.Constant(float(number) if "e" in number.lower() else Decimal(number))
        return self._computed() or self._call()

    def _computed(self) -> x.Expr | None:
        """An element, attribute or text with its content between braces."""
        match = _COMPUTED.match(self.text, self.place)
        if match is None:
            return None
        kind = match[1] or "text"
        name = self.qualified(match[2] or "", default=kind == "element")
        self.place = match.end()
        content = () if self.at("}") else (self.expression(),)
        self.expect("}")
        return x.Constructor(kind, name, content)  # type: ignore[arg-type]

    def _call(self) -> x.Expr | None:
        """A function with its arguments, if a name with a parenthesis stands next."""
        before = self.place
        self.blank()
        first = self.local_name()
        prefix, local = "", first
        if first and self.text.startswith(":", self.place) and not self.text.startswith("::", self.place):
            self.place += 1
            prefix, local = first, self.local_name()
        if not local or not self.at("(") or (not prefix and local in _KINDS):
            self.place = before
            return None
        self.expect("(")
        if prefix == "sql":
            name = self.string()
            self.expect(")")
            if local not in ("variable", "column"):
                raise self.error(2395, f"There is no function 'sql:{local}()'")
            return x.SqlValue(local, name)  # type: ignore[arg-type]
        arguments: list[x.Expr] = []
        if not self.at(")"):
            arguments.append(self.single())
            while self.accept(","):
                arguments.append(self.single())
        self.expect(")")
        return self._known_call(prefix, local, tuple(arguments))

    def _known_call(self, prefix: str, local: str, arguments: tuple[x.Expr, ...]) -> x.Expr:
        space = self.space(prefix) if prefix else FN
        if space == XS:
            return x.Cast(arguments[0], local)
        function = FUNCTIONS.get(local) if space == FN else None
        if function is None:
            shown = f"{{{space}}}:{local}"
            raise self.error(2395, f"There is no function '{shown}()'")
        least, most = function.arity
        if len(arguments) < least:
            raise self.error(2235, f"There are not enough actual arguments in the call to function '{local}()'")
        if len(arguments) > most:
            raise self.error(2236, f"There are too many arguments in the call to function '{local}()'")
        if function.single and any(argument.many for argument in arguments):
            found = "found operand of type 'xdt:untypedAtomic *'"
            raise self.error(2389, f"'{local}()' requires a singleton (or empty sequence), {found}")
        return x.Call(local, arguments)
