"""Statements: one module per family; `exec.dialect` makes the table that finds them."""
