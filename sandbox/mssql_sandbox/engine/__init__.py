"""Engine core of the sandbox: types, values, conversions, functions, storage, locks, transactions, log.

Knows neither T-SQL text, the wire protocol nor the system catalogue; those import this package.
"""
