"""Benchmarks: `make bench`. Every figure is reported with a reference figure from the same run."""
