"""SQL Server Agent's tables and procedures in msdb, with the jobs of change data capture."""

from mssql_sandbox.cdc.msdb import functions, procedures, views

VIEWS = views.VIEWS
PROCEDURES = procedures.PROCEDURES
FUNCTIONS = functions.FUNCTIONS
