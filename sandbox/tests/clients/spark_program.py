"""What the Spark test runs in a process of its own: `python -m …spark_program PORT PASSWORD JAR`; prints JSON."""

import datetime as dt
import decimal
import json
import os
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession

_DAY = dt.date(2024, 2, 29)


def _row(n: int) -> tuple:
    at = dt.datetime(2024, 2, 29, 12, n % 60, 1, 123000, tzinfo=dt.UTC)
    return (n, f"text \u4e2d {n}", decimal.Decimal(n) / 4, n % 2 == 0, n * 1.5, _DAY, at, bytes([n % 256]))


ROWS = [_row(n) for n in range(200)]
SCHEMA = "id INT, words STRING, amount DECIMAL(12,2), flag BOOLEAN, ratio DOUBLE, day DATE, at TIMESTAMP, raw BINARY"


def main(port: str, password: str, jar: str) -> dict[str, Any]:
    """Write, append, overwrite, read whole, in partitions and by query."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars", jar)
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    options = {
        "url": f"jdbc:sqlserver://127.0.0.1:{port};encrypt=false;databaseName=master",
        "user": "sa",
        "password": password,
        "driver": "com.microsoft.sqlserver.jdbc.SQLServerDriver",
    }

    def read(**more: str) -> DataFrame:
        return spark.read.format("jdbc").options(**options, **more).load()

    frame = spark.createDataFrame(ROWS, SCHEMA)
    frame.write.format("jdbc").options(**options, dbtable="dbo.spark_out", batchsize="64").mode("overwrite").save()
    found: dict[str, Any] = {}
    whole = read(dbtable="dbo.spark_out")
    found["schema"] = [(field.name, field.dataType.simpleString()) for field in whole.schema.fields]
    found["same"] = sorted(map(str, whole.collect())) == sorted(map(str, frame.collect()))
    parts = read(
        dbtable="dbo.spark_out",
        partitionColumn="id",
        lowerBound="0",
        upperBound="200",
        numPartitions="4",
        fetchsize="10",
    )
    found["partitions"] = [parts.rdd.getNumPartitions(), parts.count(), parts.agg({"id": "sum"}).collect()[0][0]]
    pushed = whole.where("id BETWEEN 10 AND 19 AND words LIKE 'text%' AND amount IS NOT NULL").select("id")
    found["filtered"] = sorted(row.id for row in pushed.collect())
    grouped = whole.groupBy("flag").max("id").orderBy("flag")
    found["grouped"] = [list(row) for row in grouped.collect()]
    asked = read(query="SELECT TOP 3 id, words FROM dbo.spark_out WHERE flag = 1 ORDER BY id")
    found["query"] = sorted(list(row) for row in asked.collect())
    by_cursor = {**options, "url": options["url"] + ";selectMethod=cursor"}
    cursors = spark.read.format("jdbc").options(**by_cursor, dbtable="dbo.spark_out").load()
    found["by cursor"] = cursors.count()
    more = frame.limit(5)
    more.write.format("jdbc").options(**options, dbtable="dbo.spark_out").mode("append").save()
    found["appended"] = whole.count()
    bulk = {**options, "url": options["url"] + ";useBulkCopyForBatchInsert=true"}
    frame.write.format("jdbc").options(**bulk, dbtable="dbo.spark_bulk", batchsize="50").mode("overwrite").save()
    found["bulk"] = read(dbtable="dbo.spark_bulk").count()
    truncating = frame.limit(2).write.format("jdbc").options(**options, dbtable="dbo.spark_out", truncate="true")
    truncating.mode("overwrite").save()
    found["truncated"] = whole.count()
    spark.stop()
    return found


if __name__ == "__main__":
    sys.stdout.write("\nANSWER " + json.dumps(main(*sys.argv[1:4])) + "\n")
