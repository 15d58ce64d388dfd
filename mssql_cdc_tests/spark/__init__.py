"""Tests that start a local Spark session."""
