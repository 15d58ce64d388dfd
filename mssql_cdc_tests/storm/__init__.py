"""The storm: random schedules of a source, its capture job and the connector. At every quiet point lake = source.

`source.py` is the model of SQL Server's side, `lake.py` runs the connector's own code on it without Spark, and
`test_model.py` draws the schedules. `make storm` runs many of them.
"""
