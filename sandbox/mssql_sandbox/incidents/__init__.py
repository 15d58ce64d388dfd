"""Incidents of a whole server, on demand: lagging secondaries, restores, failovers, huge transactions.

Faults of single statements, connections and the capture job belong to `faults`.
"""

from mssql_sandbox.incidents import capturing, replica, restoring, volume

PROCEDURES = (*capturing.PROCEDURES, *replica.PROCEDURES, *restoring.PROCEDURES, *volume.PROCEDURES)
