"""The run events of OpenLineage: what they say about a connector, its runs and its tables. Nothing is sent here.

Datasets are named as OpenLineage names SQL Server's tables, files and objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from mssql_cdc import __version__
from mssql_cdc.config import Connector
from mssql_cdc.config.connection import Connection
from mssql_cdc.config.redaction import HIDDEN, without_parts
from mssql_cdc.config.secret import Secret
from mssql_cdc.schema import TableSchema

if TYPE_CHECKING:
    from openlineage.client.event_v2 import InputDataset, RunEvent

_Facet = TypeVar("_Facet")
_PRODUCER = f"urn:mssql-cdc:{__version__}"
_ENGINE = "mssql_cdc"


@dataclass(frozen=True, slots=True)
class TableLineage:
    """A captured table, and the tables of the lake that its changes are written to, by their URIs."""

    schema: TableSchema
    outputs: tuple[str, ...]


def source_namespace(connection: Connection) -> str:
    """The namespace of the server's tables; a named instance without a port follows the host."""
    if connection.port is None and connection.instance is not None:
        return f"sqlserver://{connection.hostname}/{connection.instance}"
    return f"sqlserver://{connection.hostname}:{connection.port}"


def lake_dataset(uri: str) -> tuple[str, str]:
    """The namespace and the name of a Delta table: `file` and a path, or a bucket and a key."""
    parts = urlsplit(uri) if "://" in uri else None
    if parts is None:
        return "file", str(Path(uri).absolute())
    if parts.scheme == "file":
        return "file", parts.path
    scheme = "s3" if parts.scheme == "s3a" else parts.scheme
    return f"{scheme}://{parts.netloc}", parts.path.strip("/")


class LineageEvents:
    """Builds the events of one run of a connector."""

    def __init__(self, connector: Connector) -> None:
        from openlineage.client.uuid import generate_new_uuid

        self._connector, self._run_id = connector, str(generate_new_uuid())
        self._namespace = source_namespace(connector.connection)

    def build(
        self, state: str, at: datetime, tables: Sequence[TableLineage] = (), error: str | None = None
    ) -> RunEvent:
        """Build an event.

        Args:
            state: The state of the run: START, RUNNING, COMPLETE or FAIL.
            at: When it was reached.
            tables: The tables that the event is about.
            error: What ended the run.
        """
        from openlineage.client.event_v2 import Job, OutputDataset, Run, RunEvent, RunState

        settings, prefix = self._connector.lineage, self._connector.topic_prefix
        outputs = dict.fromkeys(lake_dataset(uri) for table in tables for uri in table.outputs)
        return RunEvent(
            eventType=RunState[state],
            eventTime=at.isoformat(),
            run=Run(self._run_id, facets=self._run_facets(error)),
            job=Job(
                settings.namespace or prefix,
                f"{prefix}.{self._connector.records.task_id}",
                facets=self._job_facets(),
            ),
            inputs=[self._input(table.schema) for table in tables],
            outputs=[OutputDataset(namespace, name) for namespace, name in outputs],
            producer=_PRODUCER,
        )

    def _input(self, schema: TableSchema) -> InputDataset:
        from openlineage.client.event_v2 import InputDataset
        from openlineage.client.facet_v2 import schema_dataset

        fields = [
            schema_dataset.SchemaDatasetFacetFields(column.name, type=column.type.declaration)
            for column in schema.value_columns
        ]
        facet = _facet(schema_dataset.SchemaDatasetFacet, fields=fields)
        return InputDataset(self._namespace, schema.table_id.text, facets={"schema": facet})

    def _job_facets(self) -> dict[str, Any]:
        from openlineage.client.facet_v2 import documentation_job, job_type_job, ownership_job, tags_job

        settings = self._connector.lineage
        facets: dict[str, Any] = {
            "jobType": _facet(
                job_type_job.JobTypeJobFacet, processingType="STREAMING", integration="MSSQL_CDC", jobType="TASK"
            ),
            "documentation": _facet(documentation_job.DocumentationJobFacet, description=settings.description),
        }
        if settings.tags:
            tags = [tags_job.TagsJobFacetFields(name, value, "CONFIG") for name, value in settings.tags]
            facets["tags"] = _facet(tags_job.TagsJobFacet, tags=tags)
        if settings.owners:
            owners = [ownership_job.Owner(name, role) for name, role in settings.owners]
            facets["ownership"] = _facet(ownership_job.OwnershipJobFacet, owners=owners)
        return facets

    def _run_facets(self, error: str | None) -> dict[str, Any]:
        from openlineage.client.constants import __version__ as client_version
        from openlineage.client.facet_v2 import RunFacet, error_message_run, processing_engine_run

        facets: dict[str, Any] = {
            "processing_engine": _facet(
                processing_engine_run.ProcessingEngineRunFacet,
                version=__version__,
                name=_ENGINE,
                openlineageAdapterVersion=client_version,
            ),
            "debezium_config": _facet(RunFacet).with_additional_properties(configs=self._shown()),
        }
        if error is not None:
            facets["errorMessage"] = _facet(
                error_message_run.ErrorMessageRunFacet,
                message=self._connector.redact(error),
                programmingLanguage="PYTHON",
            )
        return facets

    def _shown(self) -> list[str]:
        """The configuration as it was given, without secrets."""
        given: Mapping[str, str | Secret] = dict(self._connector.properties)
        return [
            f"{name}={HIDDEN if isinstance(value, Secret) else self._connector.redact(without_parts(value))}"
            for name, value in sorted(given.items())
        ]


def _facet(make: Callable[..., _Facet], **values: Any) -> _Facet:
    """A facet that says who made it, in an argument that attrs names without the field's underscore."""
    return make(**values, producer=_PRODUCER)
