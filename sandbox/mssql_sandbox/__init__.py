"""A SQL Server stand-in for tests: TDS, T-SQL, row versions and change data capture, in memory and in pure Python."""

__version__ = "0.1.0"
