"""Tests without a server, Spark or Dagster."""
