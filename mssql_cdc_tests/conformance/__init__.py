"""Tests that compare the records with those of the real Debezium."""
