"""The common parts of snapshots and ranges: the run's context, prepared tables, tasks that read and write, commits."""
