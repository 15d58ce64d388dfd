"""Tests of the sandbox's change data capture."""
