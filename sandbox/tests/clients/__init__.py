"""The real clients against the whole server: SQLAlchemy, mssql-jdbc, Spark, node's tedious."""
