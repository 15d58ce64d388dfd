"""Snapshots: splitting one into chunks and deciding when it ends (`plan`, pure), and reading it (`capture`)."""
