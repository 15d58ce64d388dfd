"""Incremental snapshots alongside the stream: `state` is their progress, `chunks` reads, `emission` writes.

`follow/incremental.py` decides what is done next.
"""
