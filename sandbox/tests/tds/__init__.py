"""Tests of the TDS protocol layer: bytes, then real drivers against scripted sessions."""
