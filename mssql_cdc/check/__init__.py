"""Checks whether the lake contains what the source contains, with readers that are independent of capture."""
