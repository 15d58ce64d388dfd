"""Tests of the source room's pure parts: texts of statements, decoding, classification."""
