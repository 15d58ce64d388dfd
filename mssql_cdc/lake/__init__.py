"""The Delta tables of a connector: their locations, how rows and progress are written, and how they are read."""
