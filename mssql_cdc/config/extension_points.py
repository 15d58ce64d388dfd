"""The properties that name extensions of records: converters, post-processors, naming strategies, transactions.

Each names a Python entry point (`mssql_cdc/extensions.py`), or one of Debezium's classes that is built in under its
Java name. What an extension does is in `records/`. With one that is not installed, the rendering of records is refused,
but never capture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, ValidationInfo, model_validator

from mssql_cdc.config.extension_names import ExtensionGroup
from mssql_cdc.config.property import GivenProperty, Group, members, prop, section
from mssql_cdc.config.regex_naming import RegexNaming
from mssql_cdc.config.report import Report
from mssql_cdc.config.reselect import ReselectSettings
from mssql_cdc.config.secret import Secret, reveal
from mssql_cdc.errors import ConfigurationError
from mssql_cdc.extensions import find_entry_point

RESELECT = "io.debezium.processors.reselect.ReselectColumnsPostProcessor"
DEFAULT_FACTORY = "io.debezium.pipeline.txmetadata.DefaultTransactionMetadataFactory"
_STRATEGIES = "io.debezium.schema."
SCHEMA_NAMING = f"{_STRATEGIES}SchemaTopicNamingStrategy"
DEFAULT_NAMING = f"{_STRATEGIES}DefaultTopicNamingStrategy"
SCHEMA_UNICODE_NAMING = f"{_STRATEGIES}SchemaUnicodeTopicNamingStrategy"
DEFAULT_UNICODE_NAMING = f"{_STRATEGIES}DefaultUnicodeTopicNamingStrategy"
SCHEMA_REGEX_NAMING = f"{_STRATEGIES}SchemaRegexTopicNamingStrategy"
DEFAULT_REGEX_NAMING = f"{_STRATEGIES}DefaultRegexTopicNamingStrategy"
BUILT_IN: Mapping[str, tuple[str, ...]] = {
    ExtensionGroup.CONVERTERS: (),
    ExtensionGroup.POST_PROCESSORS: (RESELECT,),
    ExtensionGroup.TOPIC_NAMING_STRATEGIES: (
        SCHEMA_NAMING,
        DEFAULT_NAMING,
        SCHEMA_UNICODE_NAMING,
        DEFAULT_UNICODE_NAMING,
        SCHEMA_REGEX_NAMING,
        DEFAULT_REGEX_NAMING,
    ),
    ExtensionGroup.TRANSACTION_METADATA_FACTORIES: (DEFAULT_FACTORY,),
}
"""Debezium's Java classes that are built in, by the group in which others are looked up."""
EXTENSION_FAMILY = "<extension>.*"


@dataclass(frozen=True, slots=True)
class Extension:
    """A named converter or post-processor: its type, and the properties that begin with its name, without it."""

    name: str
    type: str
    properties: tuple[tuple[str, str | Secret], ...] = ()

    def read(self) -> dict[str, str]:
        """The properties, with references resolved now (raises MissingSecretError)."""
        return {name: reveal(value) for name, value in self.properties}


def _of_extension(one: GivenProperty, _: Report) -> tuple[str, str, str | Secret]:
    extension, name = one.parts
    return extension, name, one.value


@section(Group.RECORD)
class ExtensionSettings:
    """The extensions of records."""

    converters: tuple[str, ...] = prop("converters", (), "SPI-05")
    """Lists custom value converters, by names of your choice. `<name>.type` is an entry point in the group
    `mssql_cdc.converters` (docs/extensions.md)."""
    post_processors: tuple[str, ...] = prop("post.processors", (), "SPI-10")
    """Lists post-processors of records, by names of your choice. `post.processors.<name>.type` (or `<name>.type`, an
    older form) is an entry point in the group `mssql_cdc.post_processors`, or
    `io.debezium.processors.reselect.ReselectColumnsPostProcessor`."""
    given: Annotated[tuple[tuple[str, str, str | Secret], ...], members(_of_extension)] = prop(
        EXTENSION_FAMILY, (), "SPI-05 SPI-10", late=True
    )
    """Sets the type or an option of a listed converter or post-processor, which gets it without this prefix."""
    topic_naming: str = prop("topic.naming.strategy", SCHEMA_NAMING, "TOP-11 SPI-09")
    """Selects what names topics: an entry point in the group `mssql_cdc.topic_naming_strategies`, or a Debezium class
    that is built in: `SchemaTopicNamingStrategy`, `DefaultTopicNamingStrategy` and their forms with `Unicode` and
    `Regex`."""
    regex_naming: RegexNaming = Field(default_factory=RegexNaming)
    transaction_factory: str = prop("transaction.metadata.factory", DEFAULT_FACTORY, "SPI-11")
    """Selects what builds transaction records and blocks: an entry point in the group
    `mssql_cdc.transaction_metadata_factories`, or Debezium's default."""
    placeholder: str = prop("unavailable.value.placeholder", "__debezium_unavailable_value", "SPI-10")
    """Stands for a value that the post-processor ReselectColumns reads again. Debezium's SQL Server connector itself
    sends null for a value that CDC did not deliver; the records have null, too."""

    @property
    def own_converters(self) -> tuple[Extension, ...]:
        """The converters, in order."""
        return tuple(self._extension(name) for name in self.converters)

    @property
    def own_post_processors(self) -> tuple[Extension, ...]:
        """The post-processors, in order."""
        return tuple(self._extension(name) for name in self.post_processors)

    @property
    def names_by_regex(self) -> bool:
        """Whether the naming strategy is one of those with `Regex`."""
        return self.topic_naming.strip() in {SCHEMA_REGEX_NAMING, DEFAULT_REGEX_NAMING}

    @property
    def reselect(self) -> ReselectSettings | None:
        """The options of ReselectColumns, if it is among the post-processors."""
        found = [one for one in self.own_post_processors if one.type == RESELECT]
        return ReselectSettings.parse(found[0].read()) if found else None

    def _extension(self, name: str) -> Extension:
        own = [(property_, value) for extension, property_, value in self.given if extension == name]
        kind = next((reveal(value) for property_, value in own if property_ == "type"), "")
        return Extension(name, kind.strip(), tuple((one, value) for one, value in own if one != "type"))

    def _named(self) -> Iterator[tuple[str, str, str]]:
        """The property, the group and the name of each extension."""
        for one in self.own_converters:
            yield f"{one.name}.type", ExtensionGroup.CONVERTERS, one.type
        for one in self.own_post_processors:
            yield f"{one.name}.type", ExtensionGroup.POST_PROCESSORS, one.type
        yield "topic.naming.strategy", ExtensionGroup.TOPIC_NAMING_STRATEGIES, self.topic_naming.strip()
        yield (
            "transaction.metadata.factory",
            ExtensionGroup.TRANSACTION_METADATA_FACTORIES,
            self.transaction_factory.strip(),
        )

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> ExtensionSettings:
        report = Report.of(info)
        for setting, group, name in self._named():
            if not name:
                listed = "converters" if group == ExtensionGroup.CONVERTERS else "post.processors"
                report.complain(listed, f"{setting} is required: the name of an entry point in the group {group}")
            elif name not in BUILT_IN[group]:
                try:
                    find_entry_point(group, name, setting=setting)
                except ConfigurationError as error:
                    report.refuse_records(setting)
                    report.notice(setting, str(error).removeprefix(f"{setting}: "))
        self._check_reselect(report)
        if self.names_by_regex:
            for setting, problem in self.regex_naming.problems():
                report.complain(setting, problem)
        for setting, text in self.regex_naming.unread(is_used=self.names_by_regex):
            report.notice(setting, text)
        return self

    def _check_reselect(self, report: Report) -> None:
        own = self.own_post_processors
        places = [place for place, one in enumerate(own) if one.type == RESELECT]
        if not places and self.placeholder != "__debezium_unavailable_value":
            report.notice("unavailable.value.placeholder", f"only the post-processor {RESELECT} reads it")
        if places and places != [0]:
            report.refuse_records("post.processors")
            report.notice("post.processors", "ReselectColumnsPostProcessor must be the first one, and the only one")
        for place in places:
            try:
                ReselectSettings.parse(own[place].read())
            except ValueError as error:
                report.complain("post.processors", f"{own[place].name}: {error}")
