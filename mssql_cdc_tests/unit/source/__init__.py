"""Tests of the pure parts of `mssql_cdc.source`: statement texts, decoding, classification."""
