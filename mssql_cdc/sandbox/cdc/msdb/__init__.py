"""SQL Server Agent's own tables and procedures in msdb, as far as the jobs of change data capture fill them."""

from mssql_cdc.sandbox.cdc.msdb import procedures, views

VIEWS = views.VIEWS
PROCEDURES = procedures.PROCEDURES
