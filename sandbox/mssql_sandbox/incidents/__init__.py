"""What happens to a server as a whole, on demand: lagging secondaries, restores, failovers, huge transactions.

Small faults of statements, connections and the capture job are ordered in `faults`.
"""

from mssql_sandbox.incidents import capturing, replica, restoring, volume

PROCEDURES = (*capturing.PROCEDURES, *replica.PROCEDURES, *restoring.PROCEDURES, *volume.PROCEDURES)
