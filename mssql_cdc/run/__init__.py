"""Opens databases, carries decisions out and loops; the command line, Dagster and tests all go through it."""
