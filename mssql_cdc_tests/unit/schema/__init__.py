"""Tests of table models and the type table."""
