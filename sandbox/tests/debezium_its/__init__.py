"""Debezium's own SQL Server integration tests, from its published test jars, run against the sandbox."""
