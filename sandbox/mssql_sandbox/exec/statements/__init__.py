"""Statements: one module per family; `exec.dialect` builds the table of them."""
