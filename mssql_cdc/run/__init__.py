"""Opens databases, executes decisions and loops; the command line, Dagster and the tests all use this package."""
