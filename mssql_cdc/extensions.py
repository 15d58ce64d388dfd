"""Extensions: user code that is plugged in through Python entry points, as Debezium's is through Java classes.

A distribution registers its classes in an entry point group, such as `mssql_cdc.post_processors`; a property names one
of them. This module finds and loads an entry point by group and name, and its errors list which are installed. The
contracts of the individual groups are next to the code that calls them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from mssql_cdc.errors import ConfigurationError

_JAVA_CLASS = re.compile(r"(?:[a-z_]\w*\.)+[A-Z]\w*")
_OF_SNAPSHOTS = ("snapshot", "signal", "notification")


def installed_names(group: str) -> tuple[str, ...]:
    """The names that the installed distributions register in a group, sorted, without duplicates."""
    return tuple(sorted({one.name for one in entry_points(group=group)}))


def find_entry_point(group: str, name: str, *, setting: str, any_case: bool = False) -> EntryPoint:
    """Find an entry point of a group by its name, without importing it.

    Args:
        group: the group of entry points.
        name: its name in the group.
        setting: the property that names it, for the error.
        any_case: whether to ignore the case of the name.

    Raises:
        ConfigurationError: no entry point has the name, or several with different targets have it.
    """
    found = [one for one in entry_points(group=group) if one.name == name or (any_case and _is_alike(one.name, name))]
    targets = sorted({one.value for one in found})
    if not found:
        raise ConfigurationError(f"{setting}: {_unknown(group, name)}")
    if len(targets) > 1:
        raise ConfigurationError(
            f"{setting}: {len(targets)} installed distributions name an entry point {name!r} in the group {group} "
            f"({', '.join(targets)}); uninstall all but one"
        )
    return found[0]


def load_extension(
    group: str,
    name: str,
    *,
    setting: str,
    methods: Iterable[str] = (),
    arguments: Mapping[str, Any] | None = None,
    any_case: bool = False,
) -> Any:
    """Create the object of an entry point, which names a class, or a function without arguments of its own.

    Args:
        group: the group of entry points.
        name: its name in the group.
        setting: the property that names it, for errors.
        methods: the methods that the object must have.
        arguments: keyword arguments for the class or function.
        any_case: whether to ignore the case of the name.

    Raises:
        ConfigurationError: the entry point is not installed, cannot be imported or called, or its object lacks a
            method.
    """
    point = find_entry_point(group, name, setting=setting, any_case=any_case)
    where = f"{setting}: the entry point {name!r} in the group {group} ({point.value})"
    try:
        factory = point.load()
    except Exception as error:
        raise ConfigurationError(f"{where} cannot be imported: {_told(error)}") from error
    if not callable(factory):
        raise ConfigurationError(f"{where} is {type(factory).__name__}, expected a class or a function")
    try:
        made = factory(**(arguments or {}))
    except ConfigurationError:
        raise
    except Exception as error:
        raise ConfigurationError(f"{where} cannot be called: {_told(error)}") from error
    missing = [method for method in methods if not callable(getattr(made, method, None))]
    if missing:
        raise ConfigurationError(
            f"{where} makes {type(made).__name__}, which lacks {', '.join(missing)}; see {_page(group)}"
        )
    return made


def _page(group: str) -> str:
    """The page with the contracts of a group."""
    named = group.removeprefix("mssql_cdc.")
    return "docs/snapshot-extensions.md" if named.startswith(_OF_SNAPSHOTS) else "docs/extensions.md"


def _is_alike(name: str, other: str) -> bool:
    return name.casefold() == other.casefold()


def _unknown(group: str, name: str) -> str:
    names = installed_names(group)
    listed = f"installed are {', '.join(names)}" if names else "none is installed"
    if _JAVA_CLASS.fullmatch(name):
        return (
            f"{name} is a Java class, which cannot run here; write it in Python, name it as an entry point in the "
            f"group {group} ({listed}) and set the name of that. {_page(group)} shows how"
        )
    like = difflib.get_close_matches(name, names, n=1)
    question = f"did you mean {like[0]}?" if like else f"{_page(group)} shows how to install one"
    return f"found {name!r}, expected the name of an entry point in the group {group} ({listed}); {question}"


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
