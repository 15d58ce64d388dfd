"""A secret in `spark.*` reaches Spark, and neither the list of processes nor their environments nor a file.

Nor do Spark's pages and event logs show it.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

SECRET = "h:u n=t#e!r\\2-of-the-test"
PROGRAM = """
import json, os, sys
from pathlib import Path
from mssql_cdc.config import connector_from_mapping
from mssql_cdc.spark import session as own
from mssql_cdc.spark.session import SparkSettings, start_session

seen = []
unlink = Path.unlink
def remember(path, **more):
    seen.append((path.stat().st_mode, path.read_text(encoding="utf-8")))
    unlink(path, **more)
own.Path.unlink = remember
given = {"topic.prefix": "a", "database.hostname": "h", "database.names": "d",
         "spark.hadoop.fs.s3a.secret.key": "${file:" + sys.argv[1] + ":key}"}
confs = connector_from_mapping("a", given).spark.read()
session = start_session(SparkSettings.from_environment(confs=confs, memory="1g"))
processes = {}
for folder in Path("/proc").iterdir():
    if folder.name.isdigit():
        try:
            texts = [(folder / name).read_bytes().decode(errors="replace") for name in ("cmdline", "environ")]
        except OSError:
            continue
        if f"MSSQL_CDC_TEST_MARK={os.environ['MSSQL_CDC_TEST_MARK']}" in texts[1]:
            processes[folder.name] = texts
jvm = session.sparkContext._jsc.hadoopConfiguration().get("fs.s3a.secret.key")
print(json.dumps({"value": jvm, "processes": processes, "files": seen,
                  "arguments": os.environ.get("PYSPARK_SUBMIT_ARGS")}))
session.stop()
"""


@pytest.mark.spark
@pytest.mark.slow
def test_a_secret_of_spark_is_in_no_argument_and_no_environment(tmp_path: Path):
    escaped = SECRET.replace("\\", "\\\\")
    (tmp_path / "secrets.properties").write_text(f"key={escaped}\n", encoding="utf-8")
    environment = os.environ | {"MSSQL_CDC_TEST_MARK": "271828"}
    environment.pop("PYSPARK_SUBMIT_ARGS", None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "secrets.properties")],
        env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["value"] == SECRET
    java = [texts for texts in found["processes"].values() if "java" in texts[0]]
    assert java, "the JVM is among the processes that were looked at"
    assert not [name for name, texts in found["processes"].items() if SECRET in "".join(texts)]
    ((mode, text),) = found["files"]
    assert stat.S_IMODE(mode) == 0o600
    assert "spark.hadoop.fs.s3a.secret.key=" in text
    assert found["arguments"] is None
    assert SECRET not in done.stderr


SHOWING = """
import json, sys, urllib.request
from mssql_cdc.config import connector_from_mapping
from mssql_cdc.spark.session import SparkSettings, start_session

given = json.loads(sys.argv[1])
confs = connector_from_mapping("a", given).spark.read()
session = start_session(SparkSettings.from_environment(confs=confs, memory="1g"))
context = session.sparkContext
page = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/environment"
print(urllib.request.urlopen(page, timeout=60).read().decode())
session.stop()
"""


@pytest.mark.spark
@pytest.mark.slow
def test_secrets_of_spark_are_on_no_page_and_in_no_event_log(tmp_path: Path):
    log = tmp_path / "events"
    log.mkdir()
    hidden = {
        "spark.hadoop.fs.azure.account.key.acc.dfs.core.windows.net": "hidden-1",
        "spark.hadoop.fs.azure.sas.box.acc.blob.core.windows.net": "hidden-2",
        "spark.hadoop.fs.s3a.encryption.key": "hidden-3",
        "spark.hadoop.my.proxy": "http://user:hidden-4@proxy",
        "spark.hadoop.my.own-thing": "hidden-5",
        "spark.hadoop.my.other": "${env:CDC_TEST_OTHER}",
    }
    given = hidden | {
        "topic.prefix": "a", "database.hostname": "h", "database.names": "d",
        "custom.sanitize.pattern": r"spark\.hadoop\.my\.own.*",
        "spark.hadoop.fs.s3a.endpoint": "shown-1",
        "spark.ui.enabled": "true", "spark.ui.port": "0",
        "spark.eventLog.enabled": "true", "spark.eventLog.compress": "false", "spark.eventLog.dir": log.as_uri(),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", SHOWING, json.dumps(given)],
        env=os.environ | {"CDC_TEST_OTHER": "hidden-6"}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    events = "".join(path.read_text(encoding="utf-8") for path in log.rglob("*") if path.is_file())
    for text in (done.stdout, events):
        assert "shown-1" in text
        assert [name for name in hidden if name not in text] == []
        assert "hidden-" not in text
