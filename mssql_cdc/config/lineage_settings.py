"""OpenLineage: the properties of `openlineage.integration.*`.

`run/lineage.py` reports; the transport is configured in OpenLineage's own file.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ValidationInfo, model_validator

from mssql_cdc.config.property import Group, prop, section, split
from mssql_cdc.config.report import Report

_FAMILY = "openlineage.integration"
_ENABLED, _FILE = f"{_FAMILY}.enabled", f"{_FAMILY}.config.file.path"
_DEFAULT_FILE, _DEFAULT_DESCRIPTION = "./openlineage.yml", "Debezium change data capture job"
_CLIENT, _EXTRA = "openlineage.client", "pip install 'mssql-cdc[lineage]'"

Pairs = tuple[tuple[str, str], ...]


def _pairs(value: Any) -> Any:
    """Read `name=value,name=value`."""
    if not isinstance(value, str):
        return value
    found: list[tuple[str, str]] = []
    for one in split(value):
        name, _, text = (part.strip() for part in one.partition("="))
        if not name or not text:
            raise ValueError(f"found {one!r}, expected pairs such as name=value, separated by commas")
        found.append((name, text))
    return tuple(found)


def _is_installed() -> bool:
    try:
        return find_spec(_CLIENT) is not None
    except ModuleNotFoundError:  # of the parent package, which other distributions share
        return False


def _absolute(text: str) -> str:
    return str(Path(text).expanduser().absolute())


@section(Group.LINEAGE)
class LineageSettings:
    """What is reported about the connector to OpenLineage, and where the client finds its transport."""

    enabled: bool = prop(_ENABLED, False, "OL-02")
    """Reports runs, captured tables and the tables of the lake to OpenLineage. It needs
    `pip install 'mssql-cdc[lineage]'`."""
    file: Annotated[str, AfterValidator(_absolute)] = prop(_FILE, _DEFAULT_FILE, "OL-02")
    """Names the configuration file of OpenLineage's client, which chooses the transport. It must exist. A relative path
    becomes absolute on load."""
    namespace: str | None = prop(f"{_FAMILY}.job.namespace", None, "OL-02")
    """Sets the namespace of the job, by default `topic.prefix`."""
    description: str = prop(f"{_FAMILY}.job.description", _DEFAULT_DESCRIPTION, "OL-02")
    """Describes the job."""
    tags: Annotated[Pairs, BeforeValidator(_pairs)] = prop(f"{_FAMILY}.job.tags", (), "OL-02")
    """Tags the job: `name=value,name=value`."""
    owners: Annotated[Pairs, BeforeValidator(_pairs)] = prop(f"{_FAMILY}.job.owners", (), "OL-02")
    """Names the owners of the job: `name=role,name=role`."""

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> LineageSettings:
        report = Report.of(info)
        if self.enabled and not _is_installed():
            report.complain(_ENABLED, f"needs the client of OpenLineage, which is not installed: {_EXTRA}")
        if not self.enabled:
            given = {
                _FILE: self.file != _absolute(_DEFAULT_FILE),
                f"{_FAMILY}.job.namespace": self.namespace,
                f"{_FAMILY}.job.description": self.description != _DEFAULT_DESCRIPTION,
                f"{_FAMILY}.job.tags": self.tags,
                f"{_FAMILY}.job.owners": self.owners,
            }
            for name in (name for name, is_given in given.items() if is_given):
                report.notice(name, f"no effect without {_ENABLED}=true")
        return self
