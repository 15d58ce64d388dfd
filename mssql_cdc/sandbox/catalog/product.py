"""What the server says it is: version, edition, and the answers of `SERVERPROPERTY`.

Values are SQL Server 2022 Developer Edition's. What depends on a running server (its name) is filled in by
`functions`.
"""

from __future__ import annotations

PRODUCT_VERSION = "16.0.4149.4"
PRODUCT_LEVEL = "RTM"
EDITION = "Developer Edition (64-bit)"
ENGINE_EDITION = 3
COLLATION = "SQL_Latin1_General_CP1_CI_AS"
VERSION_TEXT = (
    "Microsoft SQL Server 2022 (RTM-CU15-GDR) (KB5046862) - 16.0.4149.4 (X64) \n"
    "\tOct 15 2024 15:50:59 \n"
    "\tCopyright (C) 2022 Microsoft Corporation\n"
    "\tDeveloper Edition (64-bit) on Linux (Ubuntu 22.04.4 LTS) <X64>"
)

PROPERTIES: dict[str, str | int | None] = {
    "buildclrversion": "v4.0.30319",
    "collation": COLLATION,
    "collationid": 872468488,
    "comparisonstyle": 196609,
    "edition": EDITION,
    "editionid": -2117995310,
    "engineedition": ENGINE_EDITION,
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
    "ishadrenabled": 0,
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
    "productlevel": PRODUCT_LEVEL,
    "productmajorversion": "16",
    "productminorversion": "0",
    "productupdatelevel": "CU15",
    "productupdatereference": "KB5046862",
    "productversion": PRODUCT_VERSION,
    "resourcelastupdatedatetime": None,
    "resourceversion": "16.00.4149",
    "sqlcharset": 1,
    "sqlcharsetname": "iso_1",
    "sqlsortorder": 52,
    "sqlsortordername": "nocase_iso",
}
"""SERVERPROPERTY by lower-case name; a name that is not here gives NULL."""
