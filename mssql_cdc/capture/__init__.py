"""What snapshots and ranges share: the run's context, preparing tables, tasks that read and write, commits."""
