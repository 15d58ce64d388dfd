"""From configured texts to a `Connector`: every problem is collected before one error is raised.

The sections define the properties; this module handles what concerns a configuration as a whole: older names, unknown
names, references, properties that exclude each other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from mssql_cdc.config.catalogue import ALL, EXTENSION_PROPERTIES, canonical_name, find, nearest
from mssql_cdc.config.extension_names import ExtensionGroup
from mssql_cdc.config.java_regex import java_pattern
from mssql_cdc.config.model import SANITIZE_PATTERN, Configuration, Connector
from mssql_cdc.config.property import Effect, GivenProperty, Property, split
from mssql_cdc.config.redaction import Redactor
from mssql_cdc.config.report import Report, shown_name
from mssql_cdc.config.secret import Secret, foreign_provider, guarded, has_reference, is_sensitive, resolve
from mssql_cdc.config.signal_settings import own_channels
from mssql_cdc.config.without_effect import without_effect
from mssql_cdc.errors import InvalidPropertiesError, MissingSecretError
from mssql_cdc.extensions import installed_names

_REMOTE = "spark.remote"
_NAME_OTHERS = ("converters", "post.processors")
"""Each name in these lists is the prefix of further properties."""
_PROCESSORS = "post.processors."
"""May precede the name of a post-processor; Debezium considers the form without it deprecated."""
_NAME_EXTENSIONS = (
    "snapshot.mode.custom.name",
    "snapshot.locking.mode.custom.name",
    "snapshot.query.mode.custom.name",
)
"""Each name in these properties is the prefix of further ones, which its extension reads; so is a channel's name."""


def connector_from_mapping(
    name: str, mapping: Mapping[str, object], *, used: Callable[[Connector], Connector] | None = None
) -> Connector:
    """A connector from flat properties.

    Args:
        name: its name if the mapping has none.
        mapping: the properties.
        used: turns the connector into the form in which it is used; notices refer to that form.

    Raises:
        InvalidPropertiesError: listing every problem, each with its property and what was expected.
    """
    report = Report()
    given = _canonical(mapping, report)
    hidden = _hidden_names(mapping, given)
    tree = _tree(given, hidden, report)
    tree["connector"].setdefault("name", name)
    tree["connector"]["properties"] = _shown(given, hidden)
    tree["connector"]["redaction"] = _redaction(given, hidden)
    try:
        connector = _configuration().validate_python(tree, context=report).connector
    except ValidationError as error:
        _complain(error, given, report)
        connector = None
    if connector is None or report.problems:
        problems = _without_secrets(report.problems, [value for _, value in tree["connector"]["properties"]])
        raise InvalidPropertiesError(_text(tree["connector"]["name"], problems), problems)
    isolation = tree["connector"]["snapshot"].get("snapshot.isolation.mode", connector.snapshot.isolation)
    if isolation != connector.snapshot.isolation:
        report.notice("snapshot.isolation.mode", f"{isolation} becomes snapshot because the connection is read-only")
    elif isolation == "read_uncommitted":
        report.notice(
            "snapshot.isolation.mode", "read_uncommitted becomes read_committed: uncommitted rows may be rolled back"
        )
    names = [name for name, _ in connector.spark.conf]
    for name in names if _REMOTE in names else ():
        if name != _REMOTE:
            report.notice(name, f"no effect with {_REMOTE}: the server has options of its own")
    connector = used(connector) if used is not None else connector
    report.ineffective.extend(without_effect(connector, given))
    return replace(connector, notices=report.lines(), unrendered=tuple(report.unrendered))


@cache
def _configuration() -> TypeAdapter[Configuration]:
    return TypeAdapter(Configuration)


def _canonical(mapping: Mapping[str, object], report: Report) -> dict[str, str]:
    """The texts by current names; null counts as not set."""
    given: dict[str, str] = {}
    origin: dict[str, str] = {}
    for configured, raw in mapping.items():
        name = canonical_name(configured.strip())
        if raw is None:
            continue
        if not isinstance(raw, str | int | float):
            report.complain(name, f"found {type(raw).__name__}, expected a string, a number or a boolean")
            continue
        text = str(raw).lower() if isinstance(raw, bool) else str(raw)
        if given.get(name, text) != text:
            both = f"{shown_name(origin[name])} and {shown_name(configured)}"
            report.complain(name, f"is set twice, by {both}, with different values; keep {shown_name(name)}")
            continue
        if name != configured.strip():
            report.notice(configured, f"older name of {shown_name(name)}")
        given[name], origin[name] = text, configured
    return given


def _hidden_names(mapping: Mapping[str, object], given: Mapping[str, str]) -> frozenset[str]:
    """The current names of the properties that `custom.sanitize.pattern` matches, even under an older name."""
    try:
        expression = java_pattern(resolve(given.get(SANITIZE_PATTERN, "").strip()), ignore_case=True)
    except (ValueError, MissingSecretError):
        return frozenset()  # Its section reports the problem.
    names = ((configured.strip(), canonical_name(configured.strip())) for configured in mapping)
    return frozenset(name for old, name in names if expression.fullmatch(old) or expression.fullmatch(name))


def _tree(given: Mapping[str, str], hidden: Collection[str], report: Report) -> dict[str, Any]:
    """The texts where the sections expect them: nested like the sections, by the properties' names.

    Args:
        given: the texts by current names.
        hidden: the names of those that the configuration declares secret.
        report: receives the problems.
    """
    tree: dict[str, Any] = {}
    for prop in ALL:
        _section(tree, prop)
        if given.get(prop.name) and given.get(prop.excludes):
            report.complain(prop.name, f"cannot be set together with {prop.excludes}; keep one of them")
    listed = {one for name in _NAME_OTHERS for one in split(given.get(name, ""))}
    known = {name: find(name) for name in given}
    chosen = _extension_prefixes(given) if None in known.values() else ()  # This searches all distributions.
    for name, text in given.items():
        found = known[name]
        short = name.removeprefix(_PROCESSORS)
        own = [one for one in listed if short.startswith(f"{one}.")]
        if found is None and own:
            extension = max(own, key=len)
            parts = (extension, short.removeprefix(f"{extension}."))
            _put(tree, EXTENSION_PROPERTIES, GivenProperty(name, parts, text, name in hidden), report)
        elif found is None and name.startswith(chosen):
            pass  # The extension reads it; `Connector.properties` has it.
        elif found is None:
            like = nearest(name)
            report.complain(
                name,
                "unknown property; " + (f"did you mean {like}?" if like else "docs/configuration.md lists them all"),
            )
        else:
            _put(tree, found[0], GivenProperty(name, found[1], text, name in hidden), report)
    return tree


def _extension_prefixes(given: Mapping[str, str]) -> tuple[str, ...]:
    """The prefixes of extensions' properties: the names of the chosen extensions and of installed actions."""
    named = [one for name in _NAME_EXTENSIONS for one in split(given.get(name, ""))]
    named += own_channels(given)
    return tuple(f"{one}." for one in (*named, *installed_names(ExtensionGroup.SIGNAL_ACTIONS)))


def _put(tree: dict[str, Any], prop: Property, given: GivenProperty, report: Report) -> None:
    late = prop.late or prop.kind == "secret"
    provider = foreign_provider(given.text)
    if prop.effect is Effect.INERT and (prop.is_family or provider or has_reference(given.text)):
        prop.note(given, report)  # Nothing uses the value, so a reference in it need not be resolvable.
        return
    if provider is not None:
        report.complain(
            given.name,
            f"${{{provider}:…}} belongs to a configuration provider of Kafka Connect; write ${{env:NAME}} or "
            "${file:path:key}",
        )
        return
    try:
        text = given.text if late else resolve(given.text)
        if not text.strip() and prop.kind != "secret":
            return  # a blank value counts as not set
        value = prop.read(replace(given, text=text), report)
    except MissingSecretError as error:
        report.complain(given.name, str(error))
        return
    except ValueError as error:
        report.complain(given.name, _hidden(given.text, prop) or str(error))
        return
    section = _section(tree, prop)
    section[prop.name] = (*section.get(prop.name, ()), value) if prop.is_family else value


def _section(tree: dict[str, Any], prop: Property) -> dict[str, Any]:
    for step in prop.path[:-1]:
        tree = tree.setdefault(step, {})
    return tree


def _complain(error: ValidationError, given: Mapping[str, str], report: Report) -> None:
    """Add pydantic's errors to the problems, in the project's words."""
    for one in error.errors(include_url=False):
        name = str(one["loc"][-1])
        if one["type"] == "missing":
            if all(name != complained for complained, _ in report.problems):
                report.complain(name, f"is required. {_property(name).text}")
        else:
            words = _WORDS.get(one["type"], "{msg}").format(**one.get("ctx", {}), **one)
            report.complain(name, _hidden(given.get(name, ""), _property(name)) or words)


_WORDS = {
    "value_error": "{error}",
    "greater_than_equal": "found {input}, expected {ge} or more",
    "less_than_equal": "found {input}, expected {le} or less",
}


def _hidden(text: str, prop: Property) -> str | None:
    """The message about a bad value to which a reference leads, without the value; None: there is no reference."""
    return f"{text} does not refer to a valid value (kind: {prop.kind})" if has_reference(text) else None


def _property(name: str) -> Property:
    found = find(name)
    assert found is not None, f"{name} is a property"
    return found[0]


def _is_secret(name: str) -> bool:
    found = find(name)
    return found is not None and found[0].kind == "secret"


def _shown(given: Mapping[str, str], hidden: Collection[str]) -> tuple[tuple[str, str | Secret], ...]:
    """The configuration as given, secrets wrapped and salts left out."""
    return tuple(
        (shown_name(name), Secret(text) if name in hidden or _is_secret(name) else guarded(name, text))
        for name, text in given.items()
    )


def _redaction(given: Mapping[str, str], hidden: Collection[str]) -> Redactor:
    """The secrets of the configuration, and the values that are not secrets because messages need them.

    A reference indicates that a value may be a secret. Declared properties with another meaning (a host, a database, a
    path) hold no secrets; for free ones, whose meaning drivers, clients and extensions know, the reference decides.
    """
    secrets: list[Secret] = []
    referred: list[Secret] = []
    shown: list[str | Secret] = []
    for (name, value), key in zip(_shown(given, hidden), given, strict=True):
        if not isinstance(value, Secret):
            shown.append(value)
        elif key in hidden or is_sensitive(name):
            secrets.append(value)
        elif _is_free(key):
            referred.append(value)
        elif not _is_secret(key):
            shown.append(value)
    return Redactor(tuple(secrets), shown=tuple(shown), referred=tuple(referred))


def _is_free(name: str) -> bool:
    """Whether others define the property's meaning; not so for the driver, which every ODBC message names."""
    found = find(name)
    return (found is None or found[0].name.endswith("*")) and name.lower() != "odbc.driver"


def _without_secrets(problems: Sequence[tuple[str, str]], values: Sequence[str | Secret]) -> list[tuple[str, str]]:
    """The problems without secrets: checks of whole sections see resolved references, and repeat what they found."""
    hide = Redactor(tuple(one for one in values if isinstance(one, Secret)), shown=tuple(values))
    return [(name, hide(problem)) for name, problem in problems]


def _text(connector: str, problems: Sequence[tuple[str, str]]) -> str:
    lines = [f"{name}: {problem}" for name, problem in problems]
    if len(lines) == 1:
        return f"connector {connector!r}: {lines[0]}"
    head = f"connector {connector!r}: {len(lines)} problems in its configuration"
    return "\n".join([head, *(f"- {one}" for one in lines)])
