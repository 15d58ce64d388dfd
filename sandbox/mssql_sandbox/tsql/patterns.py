"""Regular expressions of literals, alone and in rows of VALUES."""

from __future__ import annotations

import re

TEXT = r"[Nn]?'[^']*+(?:''[^']*+)*+'"
BINARY = r"0[xX][0-9A-Fa-f]*+"
NUMBER = r"(?:\d++\.?\d*+|\.\d++)(?:[eE][+-]?\d++)?+"
_CELL = rf"(?:{TEXT}|{BINARY}|[+-]?{NUMBER}|[Nn][Uu][Ll][Ll])(?=\s*+[,)])"
_ROW = rf"\(\s*+{_CELL}(?:\s*+,\s*+{_CELL})*+\s*+\)"
ROWS = re.compile(rf"\s*+({_ROW}(?:\s*+,\s*+{_ROW})++)")
"""Two or more rows of literals."""
CELLS = re.compile(rf"\(\s*+(?:{TEXT}|[^\s,()']++)|{TEXT}|[^\s,()']++")
"""The literals of a text that `ROWS` has matched; the first of a row keeps its parenthesis."""
