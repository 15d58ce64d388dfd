"""The steps after a committed range: current tables, transactions, signals, sweeps. Every step is idempotent."""
