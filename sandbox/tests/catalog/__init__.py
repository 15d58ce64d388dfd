"""Tests of the system views and catalogue procedures."""
