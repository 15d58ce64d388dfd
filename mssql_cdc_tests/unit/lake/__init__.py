"""Tests of the Delta tables without Spark."""
