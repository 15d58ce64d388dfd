"""Putting another function in the place of one of the product's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any
from unittest.mock import patch


@contextmanager
def everywhere(function: Callable[..., Any], other: Callable[..., Any]) -> Iterator[None]:
    """Let `other` be called instead of `function` in every module that imports it, the models among them."""
    holders = _holders(function, len(sys.modules))
    assert holders, f"no module holds {function.__qualname__}"
    with ExitStack() as stack:
        for module, name in holders:
            stack.enter_context(patch.object(module, name, other))
        yield


@cache
def _holders(function: Callable[..., Any], _modules: int) -> list[tuple[object, str]]:
    return [
        (module, name)
        for path, module in list(sys.modules.items())
        if path.startswith(("mssql_cdc.", "mssql_cdc_tests."))
        for name, value in vars(module).items()
        if value is function
    ]
