"""Expressions: syntax to closures `fn(row, context)` with their types."""
