"""`mssql-cdc records --follow`: the connector's loop, and a stream of its records for one consumer.

This is what Debezium Server is to Debezium: records go to an output as cuts become complete, events about the connector
to standard error, and commands come from standard input. What the loop does is in `run/`, what records look like in
`records/`.
"""
