"""What follows a committed range: current tables, transactions, signals, sweeps. Every step may be repeated."""
