"""A table with a key, and the statements that enable and disable its capture, as a user writes them."""

from __future__ import annotations

TABLE = "CREATE TABLE dbo.t (id int NOT NULL, a int NULL, CONSTRAINT PK_t PRIMARY KEY (id))"


def enable(more: str = "", *, schema: str = "dbo", table: str = "t") -> str:
    return (
        f"EXEC sys.sp_cdc_enable_table @source_schema = N'{schema}', @source_name = N'{table}', "
        f"@role_name = NULL{', ' + more if more else ''}"
    )


def disable(instance: str, *, table: str = "t") -> str:
    return (
        f"EXEC sys.sp_cdc_disable_table @source_schema = N'dbo', @source_name = N'{table}', "
        f"@capture_instance = N'{instance}'"
    )
