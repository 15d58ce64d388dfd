"""From configured text to checked values: every problem is collected before one error is raised.

Works on the property table alone; what the values mean together (exclusive pairs, requirements) is checked here, what
becomes of them is the business of `build.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mssql_cdc.config.catalogue import ALL, EXCLUSIVE, Found, canonical_name, find, nearest, shown_name
from mssql_cdc.config.driver import guarded
from mssql_cdc.config.property import Property, Status
from mssql_cdc.config.secret import Secret, has_reference, resolve
from mssql_cdc.errors import ConfigurationError, MissingSecretError

_LATE_FAMILIES = frozenset({"driver.*", "database.*", "odbc.*", "spark.*", "delta.storage.*"})
_NAMES_OF_OTHERS = ("converters", "post.processors")


@dataclass(frozen=True, slots=True)
class Member:
    """One configured property of a family: its name, what the placeholders stand for, its value."""

    name: str
    parts: tuple[str, ...]
    value: Any


@dataclass(slots=True)
class Settings:
    """Parsed values by canonical name; defaults are filled in. `given` are the texts that were configured."""

    given: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    members: dict[str, list[Member]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def value(self, name: str) -> Any:
        """The value of a property of the table: parsed, or its default, or None."""
        return self.values.get(name)

    def family(self, name: str) -> list[Member]:
        """The configured members of a family, in configured order."""
        return self.members.get(name, [])

    def is_given(self, name: str) -> bool:
        """Whether the property was set explicitly."""
        return name in self.given

    def complain(self, name: str, message: str) -> None:
        """Note a problem with a property."""
        self.problems.append(f"{shown_name(name)}: {message}")

    def shown(self) -> tuple[tuple[str, str | Secret], ...]:
        """The configuration as given, secrets wrapped and salts left out."""
        rows: list[tuple[str, str | Secret]] = []
        for name, text in self.given.items():
            found = find(name)
            secret = found is not None and found.prop.kind == "secret"
            rows.append((shown_name(name), Secret(text) if secret else guarded(name, text)))
        return tuple(rows)

    def raise_problems(self, connector: str) -> None:
        """One ConfigurationError with all problems, if there are any: a line each, but one line when it is one."""
        if not self.problems:
            return
        if len(self.problems) == 1:
            raise ConfigurationError(f"connector {connector!r}: {self.problems[0]}")
        head = f"connector {connector!r}: {len(self.problems)} problems in its configuration"
        raise ConfigurationError("\n".join([head, *(f"- {one}" for one in self.problems)]))


def resolve_settings(mapping: Mapping[str, object]) -> Settings:
    """Check and parse a flat mapping of property names to texts, numbers or booleans."""
    settings = Settings()
    given = _canonical(mapping, settings)
    settings.given.update(given)
    settings.values.update(_defaults())
    others = tuple(
        f"{name}." for key in _NAMES_OF_OTHERS for name in (x.strip() for x in given.get(key, "").split(",")) if name
    )
    for name, text in given.items():
        found = find(name)
        if found is not None:
            _take(name, text, found, settings)
        elif others and name.startswith(others):
            settings.notices.append(f"{name}: accepted, has no effect here. Setting of a Java class.")
        else:
            like = nearest(name)
            settings.complain(name, "unknown property" + (f"; did you mean {like}?" if like else ""))
    for prop in ALL:
        if prop.required and not settings.values.get(prop.name) and prop.name not in given:
            settings.complain(prop.name, f"is required. {prop.text}")
    for one, other in EXCLUSIVE:
        if given.get(one) and given.get(other):
            settings.complain(one, f"cannot be set together with {other}; keep one of them")
    return settings


def _canonical(mapping: Mapping[str, object], settings: Settings) -> dict[str, str]:
    given: dict[str, str] = {}
    origin: dict[str, str] = {}
    for configured, raw in mapping.items():
        name = canonical_name(configured.strip())
        text = _as_text(raw)
        if raw is None:
            continue
        if text is None:
            settings.complain(name, f"found a {type(raw).__name__}, expected a text, a number or a boolean")
            continue
        if name in given and given[name] != text:
            both = " and ".join(shown_name(one) for one in (origin[name], configured))
            settings.complain(name, f"is set twice, by {both}, with different values; keep {shown_name(name)}")
            continue
        if name != configured.strip():
            settings.notices.append(f"{shown_name(configured)}: older name of {shown_name(name)}")
        given[name] = text
        origin[name] = configured
    return given


def _as_text(raw: object) -> str | None:
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, int | float):
        return str(raw)
    return raw if isinstance(raw, str) else None


def _defaults() -> dict[str, Any]:
    return {one.name: one.parse(one.default) for one in ALL if one.default is not None and not one.is_family}


def _take(name: str, text: str, found: Found, settings: Settings) -> None:
    """Parse one configured property into the settings; note problems and notices."""
    prop = found.prop
    reference = text
    if prop.kind != "secret" and prop.name not in _LATE_FAMILIES and has_reference(text):
        try:
            text = resolve(text)
        except MissingSecretError as error:
            settings.complain(name, str(error))
            return
    if not text.strip() and prop.kind != "secret":
        return
    if prop.status is Status.ACCEPTED:
        settings.notices.append(f"{name}: accepted, has no effect here. {prop.text}")
    try:
        value: Any = guarded(name, text) if prop.name in _LATE_FAMILIES else prop.parse(text)
    except ValueError as error:
        hidden = f"{reference} does not refer to a valid value (kind: {prop.kind})"
        settings.complain(name, str(error) if text == reference else hidden)
        return
    if not _allowed(name, value, prop, settings):
        return
    if prop.is_family:
        settings.members.setdefault(prop.name, []).append(Member(name, found.parts, value))
    else:
        settings.values[name] = value
    if prop.kind == "choice" and text.strip().lower() != value:
        settings.notices.append(f"{name}: {text.strip()} is an older name of {value}")


def _allowed(name: str, value: Any, prop: Property, settings: Settings) -> bool:
    """Refuse or notice what is known but not implemented yet."""
    is_default = prop.default is not None and prop.parse(prop.default) == value
    if prop.status is Status.REFUSED and not is_default:
        settings.complain(name, "known, not implemented yet; leave it out: the rows would differ from what it asks for")
        return False
    if prop.status is Status.PLANNED and not is_default:
        settings.notices.append(f"{name}: known, not implemented yet; it has no effect. {prop.text}")
    if prop.kind == "choices":
        settings.notices.extend(
            f"{name}: {one} is known, not implemented yet; it has no effect" for one in value if one in prop.planned
        )
    return True
