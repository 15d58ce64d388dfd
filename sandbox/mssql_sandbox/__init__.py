"""A SQL Server stand-in: TDS, T-SQL, storage with row versions and change data capture, in pure Python."""
