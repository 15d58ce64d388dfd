"""Streaming: what to read next (`plan`, pure) and reading it into the lake (`capture`). Knows no Dagster."""
