"""Benchmarks: `make bench`. Every figure comes with one from the same run that it is to be held against."""
