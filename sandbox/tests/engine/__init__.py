"""Tests of the engine: types, conversions, storage, locks, log."""
