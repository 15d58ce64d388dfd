"""Does the lake hold what the source holds? Answered by a path of its own, sharing no reader with capture."""
