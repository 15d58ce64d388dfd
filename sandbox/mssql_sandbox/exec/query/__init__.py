"""Queries: plans made of operators that hand on slices (lists) of rows."""
