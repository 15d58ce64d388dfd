"""What happens to a server as a whole, on demand: a secondary that lags, restores, failovers, huge transactions.

Small faults of statements, connections and the capture job are ordered in `faults`.
"""

from mssql_cdc.sandbox.incidents import replica, restoring, volume

PROCEDURES = (*replica.PROCEDURES, *restoring.PROCEDURES, *volume.PROCEDURES)
