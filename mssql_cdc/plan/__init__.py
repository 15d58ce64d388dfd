"""Decides from facts what to do next for one database: values in, a decision out. No source, no lake, no clock."""
