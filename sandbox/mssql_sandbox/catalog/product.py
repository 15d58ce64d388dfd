"""The `SERVERPROPERTY` values that all servers share.

Version, edition and name belong to the server (`Server.version`); `functions.properties` adds them.
"""

from __future__ import annotations

PROPERTIES: dict[str, str | int | None] = {
    "buildclrversion": "v4.0.30319",
    "collationid": 872468488,
    "comparisonstyle": 196609,
    "editionid": -2117995310,
    "filestreamconfiguredlevel": 0,
    "filestreameffectivelevel": 0,
    "hadrmanagerstatus": 2,
    "instancedefaultbackuppath": "/var/opt/mssql/data",
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
    "isserversuspendedforsnapshotbackup": 0,
    "istempdbmetadatamemoryoptimized": 0,
    "isxtpsupported": 1,
    "pathseparator": "/",
    "productbuildtype": None,
    "lcid": 1033,
    "licensetype": "DISABLED",
    "numlicenses": None,
    "productminorversion": "0",
    "sqlcharset": 1,
    "sqlcharsetname": "iso_1",
    "sqlsortorder": 52,
    "sqlsortordername": "nocase_iso",
    "suspendeddatabasecount": 0,
}
"""SERVERPROPERTY values by lower-case name, except those of the server itself; unknown names give NULL."""
