"""Snapshots: `chunk_plan` splits one into chunks and decides when it ends (pure); `take` runs it."""
