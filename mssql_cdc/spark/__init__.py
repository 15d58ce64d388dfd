"""The one owner of Spark: sessions and their confs, and lists of tasks run as one job."""
