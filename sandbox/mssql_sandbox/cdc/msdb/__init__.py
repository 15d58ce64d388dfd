"""SQL Server Agent's own tables and procedures in msdb, as far as the jobs of change data capture fill them."""

from mssql_sandbox.cdc.msdb import functions, procedures, views

VIEWS = views.VIEWS
PROCEDURES = procedures.PROCEDURES
FUNCTIONS = functions.FUNCTIONS
