"""Debezium's SQL Server connector rebuilt as Dagster assets on Spark and Delta Lake.

Nothing heavy is imported here: Spark workers import this package.
"""

__version__ = "0.1.0"
