"""Procedures of the server that change definitions: `own` is their table."""
