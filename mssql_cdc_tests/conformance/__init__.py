"""Tests that hold our behaviour beside the genuine Debezium."""
