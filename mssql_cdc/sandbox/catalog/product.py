"""What the server says it is: the text of `@@VERSION`, and what `SERVERPROPERTY` answers on every server.

Version, edition and name are the server's own (`Server.version`); `functions.properties` adds them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mssql_cdc.sandbox.engine.storage.server import Server

_BUILD = "RTM-CU15-GDR) (KB5046862"
_BUILT = "Oct 15 2024 15:50:59"


def version_text(server: Server) -> str:
    """The text of `@@VERSION`."""
    version = server.version
    return (
        f"Microsoft SQL Server {version.year} ({_BUILD}) - {version.version} (X64) \n"
        f"\t{_BUILT} \n"
        f"\tCopyright (C) {version.year} Microsoft Corporation\n"
        f"\t{version.edition} on Linux (Ubuntu 22.04.4 LTS) <X64>"
    )


PROPERTIES: dict[str, str | int | None] = {
    "buildclrversion": "v4.0.30319",
    "collationid": 872468488,
    "comparisonstyle": 196609,
    "editionid": -2117995310,
    "filestreamconfiguredlevel": 0,
    "filestreameffectivelevel": 0,
    "hadrmanagerstatus": 2,
    "instancedefaultdatapath": "/var/opt/mssql/data/",
    "instancedefaultlogpath": "/var/opt/mssql/data/",
    "instancename": None,
    "isadvancedanalyticsinstalled": 0,
    "isbigdatacluster": 0,
    "isclustered": 0,
    "isexternalauthenticationonly": 0,
    "isfulltextinstalled": 0,
    "isintegratedsecurityonly": 0,
    "islocaldb": 0,
    "ispolybaseinstalled": 0,
    "issingleuser": 0,
    "isxtpsupported": 1,
    "lcid": 1033,
    "licensetype": "DISABLED",
    "numlicenses": None,
    "productbuild": "4149",
    "productbuildtype": "GDR",
    "productminorversion": "0",
    "productupdatereference": "KB5046862",
    "resourcelastupdatedatetime": None,
    "resourceversion": "16.00.4149",
    "sqlcharset": 1,
    "sqlcharsetname": "iso_1",
    "sqlsortorder": 52,
    "sqlsortordername": "nocase_iso",
}
"""SERVERPROPERTY by lower-case name, but for the server's own; a name that is nowhere gives NULL."""
