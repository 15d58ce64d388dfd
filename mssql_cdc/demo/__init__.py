"""`make demo`: a sandbox with a sample database, a workload on it, and Dagster bringing it into a lake.

Not part of the connector: it uses the sandbox and the command line as any newcomer would.
"""
