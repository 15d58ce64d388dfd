"""Tests of the stand-in SQL Server."""
