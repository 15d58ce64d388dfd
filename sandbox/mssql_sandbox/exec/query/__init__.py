"""Queries: plans made of operators that pass on slices (lists) of rows."""
