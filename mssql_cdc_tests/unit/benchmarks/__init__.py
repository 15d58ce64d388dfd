"""Tests of the benchmarks themselves: targets, files of figures, the command line."""
