r"""Java's regular expressions and replacements (`$1`, `${name}`) as Python's, exactly or not at all.

What Python does not have, or would interpret differently, is an error that names it. Lists of expressions belong to
`patterns.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

_POSIX = {
    "Lower": "a-z",
    "Upper": "A-Z",
    "ASCII": r"\x00-\x7f",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Alnum": "a-zA-Z0-9",
    "Punct": r"!-/:-@\[-`{-~",
    "Space": r" \t\n\x0b\f\r",
    "XDigit": "0-9a-fA-F",
}
_BLANKS = r" \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000"
_LINE_ENDS = r"\n\r\x85\u2028\u2029"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_PARTS = re.compile(
    r"""
    (?P<quoted> \\Q.*?(?:\\E|\Z)) | (?P<property> \\[pP](?:\{\w+\}|\w)) | (?P<named> \\k<[^>]*>) | (?P<escaped> \\.)
    | (?P<group> \(\?<(?![=!])[^>]*>) | (?P<special> \(\?(?:[:=!>]|<[=!]|[ims]*(?:-[ims]+)?[:)])) | (?P<unknown> \(\?)
    | (?P<repeated> \{[0-9]+(?:,[0-9]*)?\}) | (?P<other> .)
    """,
    re.VERBOSE | re.DOTALL,
)
_SAME = frozenset("dDwWsSbBAtnrfaux")
"""Letters after a backslash that mean the same in both, as long as only ASCII digits and letters count as such."""


@dataclass(frozen=True, slots=True)
class JavaReplacement:
    """An expression that a whole text must match, and the replacement for its first match in the text."""

    expression: str
    replacement: str

    def check(self) -> None:
        """Raise ValueError unless both are valid."""
        _template(self.expression, self.replacement)

    def apply(self, text: str) -> str | None:
        """Return the text with the replacement, like Java's `matches` and `replaceFirst`; None if it does not match."""
        pattern = java_pattern(self.expression)
        if pattern.fullmatch(text) is None:
            return None
        # `replaceFirst` searches for a match again, and may find a shorter one.
        found = pattern.search(text)
        assert found is not None
        parts = _template(self.expression, self.replacement)
        made = "".join(part if isinstance(part, str) else found[part] or "" for part in parts)
        return text[: found.start()] + made + text[found.end() :]


@cache
def java_pattern(expression: str, *, ignore_case: bool = False) -> re.Pattern[str]:
    """Return a Java expression as a Python pattern.

    Args:
        expression: The expression.
        ignore_case: Like Java's `CASE_INSENSITIVE`: ASCII letters match in both cases. `(?i)` may then be anywhere.

    Raises:
        ValueError: It is not valid, or Python has nothing that matches the same texts.
    """
    text = _translated(expression, without="(?i)" if ignore_case else None)
    try:
        return re.compile(text, re.ASCII | (re.IGNORECASE if ignore_case else 0))
    except (re.error, ValueError, OverflowError, RecursionError) as error:  # Numbers and nesting may be too large.
        raise ValueError(f"{expression!r} is not a valid regular expression: {error}") from None


def _translated(expression: str, *, without: str | None) -> str:
    made: list[str] = []
    in_class = dotall = False
    place = 0
    while place < len(expression):
        found = _PARTS.match(expression, place)
        assert found is not None
        kind, text, place = found.lastgroup, found.group(), found.end()
        if kind == "quoted":
            made.append(re.escape(text[2:].removesuffix("\\E")))
        elif kind == "property":
            made.append(_class(text[2:].strip("{}"), text[1] == "P", in_class, expression))
        elif kind in {"escaped", "named"}:
            made.append(_escape(text, expression, place, in_class=in_class))
        elif in_class:
            made.append(_in_class(found, expression))
            place = found.start() + 1
            in_class = made[-1] != "]"
        elif kind == "group":
            name = text[3:-1]
            if not _NAME.fullmatch(name):
                raise _unsupported(text, expression)
            made.append(f"(?P<{name}>")
        elif text == without:
            pass
        elif kind == "special":
            if text.endswith(")") and found.start():
                raise _unsupported(text, expression)
            dotall = dotall or "s" in text
            made.append(text)
        elif text == "[":
            start = re.compile(r"\^?\]?").match(expression, place)
            assert start is not None
            made.append("[" + start.group().replace("]", r"\]"))
            place, in_class = start.end(), True
        elif kind == "unknown" or text in {"{", "\\"}:
            raise _unsupported(text, expression)
        else:
            made.append(text if text != "." or dotall else f"[^{_LINE_ENDS}]")
    return "".join(made)


def _in_class(found: re.Match[str], expression: str) -> str:
    """Return one character of a class; only Java has classes within classes."""
    one, start = expression[found.start()], found.start()
    if one == "[" or expression[start : start + 2] in {"&&", "--"}:
        raise _unsupported(expression[start : start + 2], expression)
    return f"\\{one}" if one in "&|~" else one


def _escape(text: str, expression: str, end: int, *, in_class: bool) -> str:
    letter = text[1]
    if letter == "k" and len(text) > 2 and not in_class:
        return f"(?P={text[3:-1]})"
    if letter == "h":
        return _BLANKS if in_class else f"[{_BLANKS}]"
    if letter == "e":
        return r"\x1b"
    if letter in "zZ" and not in_class:
        return r"\Z" if letter == "z" else rf"(?=[{_LINE_ENDS}]?\Z)"
    is_reference = letter in "123456789" and not in_class and not expression[end : end + 1].isdigit()
    is_same = letter in _SAME and not (in_class and letter in "bBA") and expression[end : end + 1] != "{"
    if is_reference or is_same or not (letter.isascii() and letter.isalnum()):
        return text
    raise _unsupported(text, expression)


def _class(name: str, is_negated: bool, in_class: bool, expression: str) -> str:  # noqa: FBT001
    if name not in _POSIX or (is_negated and in_class):
        raise _unsupported(f"\\{'P' if is_negated else 'p'}{{{name}}}", expression)
    return _POSIX[name] if in_class else f"[{'^' if is_negated else ''}{_POSIX[name]}]"


def _unsupported(part: str, expression: str) -> ValueError:
    return ValueError(
        f"{part} in {expression!r} is not valid or not supported; write it in another way, such as with \\Q…\\E for "
        "what stands for itself, or [a-z] for a class of characters"
    )


@cache
def _template(expression: str, replacement: str) -> tuple[str | int, ...]:
    """Return the texts and the numbers of groups that a replacement consists of.

    Raises:
        ValueError: One of the two is not valid.
    """
    pattern = java_pattern(expression)
    parts: list[str | int] = []
    place = 0
    while place < len(replacement):
        one, following = replacement[place], replacement[place + 1 : place + 2]
        if one not in "\\$":
            parts.append(one)
            place += 1
        elif not following:
            raise ValueError(f"{replacement!r} ends in {one}; write \\{one} for the character itself")
        elif one == "\\":
            parts.append(following)
            place += 2
        else:
            group, place = _group(pattern, replacement, place + 1)
            parts.append(group)
    return tuple(parts)


def _group(pattern: re.Pattern[str], replacement: str, place: int) -> tuple[int, int]:
    """Return the number of a group, and where its reference ends."""
    if replacement[place] == "{":
        end = replacement.find("}", place)
        name = replacement[place + 1 : end] if end > 0 else ""
        if name not in pattern.groupindex:
            raise ValueError(f"{replacement!r} names a group that {pattern.pattern!r} does not have: {name!r}")
        return pattern.groupindex[name], end + 1
    if not re.match("[0-9]", replacement[place]):
        raise ValueError(f"{replacement!r} has a $ that no group follows; write \\$ for the character itself")
    number, place = int(replacement[place]), place + 1
    if number > pattern.groups:
        raise ValueError(f"{replacement!r} names group {number}, but {pattern.pattern!r} has {pattern.groups}")
    while re.match("[0-9]", replacement[place : place + 1]):
        longer = number * 10 + int(replacement[place])
        if longer > pattern.groups:
            break
        number, place = longer, place + 1
    return number, place
