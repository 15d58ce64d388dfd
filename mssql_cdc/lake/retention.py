"""How long old files of Delta tables stay readable by default. Imports nothing: `--help` shows it."""

RETAIN_HOURS = 168
"""One week, which is Delta's default."""
