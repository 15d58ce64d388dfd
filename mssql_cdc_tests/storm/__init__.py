"""The storm: random schedules of a source, its capture job and the connector. At every quiet point lake = source.

`machine.py` is the description; `model.py` (with `model_server.py`) and `whole.py` are the two worlds it is played in.
`make storm` plays many schedules.
"""
