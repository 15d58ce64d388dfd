"""`make demo`: a sandbox with a sample database, a workload on it, and Dagster, which captures it into a lake.

The demo is not part of the connector: it uses the sandbox and the command line like any new user.
"""
