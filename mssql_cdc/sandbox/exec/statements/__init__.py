"""Statements: one module per family; `exec.interpreter` holds the table that finds them."""
