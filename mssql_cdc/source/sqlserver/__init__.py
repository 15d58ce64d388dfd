"""SQL Server as a source: everything that speaks T-SQL or ODBC, and nothing that speaks Delta or Dagster."""
