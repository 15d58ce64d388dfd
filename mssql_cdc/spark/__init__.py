"""The only package that manages Spark: sessions and their confs, and lists of tasks that run as one job."""
