"""Debezium records, rendered from the lake up to the last complete cut; nothing here writes to the lake."""
