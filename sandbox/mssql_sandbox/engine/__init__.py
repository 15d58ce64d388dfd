"""Engine core of the stand-in: types, values, conversions, functions, storage, locks, transactions, log.

Nothing here knows T-SQL text, the wire protocol or the system catalog; those import this package.
"""
