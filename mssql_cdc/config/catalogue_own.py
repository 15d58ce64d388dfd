"""The property table, part 6: this project's own properties (`delta.*`, `dagster.*`, `spark.*`)."""

from __future__ import annotations

from mssql_cdc.config.property import Property

OWN = (
    Property(
        name="delta.warehouse",
        kind="text",
        default="warehouse",
        text="Path or URI of the lake; a relative path is made absolute at once. `--warehouse` wins.",
    ),
    Property(
        name="delta.storage.*",
        kind="text",
        text="Storage option of the lake (`delta.storage.AWS_REGION`), for `deltalake` and the workers' files.",
    ),
    Property(
        name="delta.key.secret",
        kind="secret",
        text="Key of the HMAC that stands for masked key columns in `_key`; required when such a column exists.",
    ),
    Property(
        name="delta.current.interval",
        kind="int",
        default="15",
        minimum=0,
        text="Shortest time between two merges into current tables, in seconds; ranges between are coalesced.",
    ),
    Property(
        name="delta.deletion.vectors",
        kind="bool",
        default="true",
        text="Deletion vectors on current tables.",
    ),
    Property(
        name="dagster.range.max.rows",
        kind="int",
        default="5000000",
        minimum=1,
        text="Most change rows of one range, counted before it is fixed; one transaction is never divided.",
    ),
    Property(
        name="dagster.max.attempts",
        kind="int",
        default="5",
        minimum=1,
        text="Attempts at a range before a failing table's status becomes `failed` and cuts go on without it.",
    ),
    Property(
        name="dagster.max.run.seconds",
        kind="int",
        default="0",
        minimum=0,
        text="Loop mode: how long one run goes on with further ranges, in seconds; 0 = one range per run.",
    ),
    Property(
        name="spark.*",
        kind="text",
        text="Setting of the Spark session, such as `spark.master` or `spark.remote`, passed as it is.",
    ),
)
