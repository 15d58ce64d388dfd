"""The class path of one Debezium version: resolved and compiled by Maven, once per version and state of the sources."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = "io.debezium.connector.sqlserver."
MAVEN_SECONDS = 300
_MARKS = re.compile(r"\x1b\[[0-9;]*m|\[ERROR\]")
_NO_NETWORK = re.compile(r"Could not transfer|Unknown host|UnknownHost|Connection (?:refused|timed out)|offline mode")


class ItsUnavailableError(RuntimeError):
    """The tests cannot be run here; the text says in one line what is missing."""


@dataclass(frozen=True, slots=True)
class Jars:
    """What a JVM needs, and the names of the test classes in it."""

    class_path: str
    resources: Path
    classes: tuple[str, ...]


def prepare(version: str, folder: Path) -> Jars:
    """Resolve and compile into the folder, unless that is done.

    Raises:
        ItsUnavailableError: No Maven, no JDK, no way to Maven's repository, or no such version.
    """
    stamp = folder / "class-path"
    sources = [HERE / "pom.xml", *sorted((HERE / "java").rglob("*.java"))]
    if not stamp.exists() or any(source.stat().st_mtime > stamp.stat().st_mtime for source in sources):
        _run_maven(version, folder, stamp)
    jars = stamp.read_text(encoding="utf-8").strip().split(os.pathsep)
    tests = [jar for jar in jars if Path(jar).name == f"debezium-connector-sqlserver-{version}-tests.jar"]
    if len(tests) != 1:
        raise ItsUnavailableError(f"Debezium {version} has no jar of integration tests for SQL Server")
    resources = folder / "resources"
    class_path = os.pathsep.join([str(folder / "classes"), str(resources), *jars])
    return Jars(class_path, resources, _unpack(Path(tests[0]), resources))


def with_sources(jars: Jars, sources: Path, folder: Path) -> Jars:
    """Compile further Java sources, whose classes take the place of those of the same name.

    Args:
        jars: What they are compiled with.
        sources: The folder of their packages.
        folder: Gets the classes.

    Raises:
        ItsUnavailableError: They cannot be compiled.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = [str(path) for path in sorted(sources.rglob("*.java"))]
    command = ["javac", "-nowarn", "-cp", jars.class_path, "-d", str(folder), *files]
    done = subprocess.run(command, capture_output=True, text=True, timeout=MAVEN_SECONDS)
    if done.returncode != 0:
        raise ItsUnavailableError(f"{sources} cannot be compiled: {done.stderr[:300]}")
    return replace(jars, class_path=os.pathsep.join([str(folder), jars.class_path]))


def _run_maven(version: str, folder: Path, stamp: Path) -> None:
    if shutil.which("mvn") is None or shutil.which("javac") is None:
        raise ItsUnavailableError("needs Maven and a JDK (17 or newer): mvn or javac is not on the PATH")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    found = folder / "class-path.new"
    command = [
        "mvn", "--batch-mode", "--quiet", "-Dstyle.color=never", f"--file={HERE / 'pom.xml'}", *_choices(version),
        f"-Dbuild.folder={folder}", f"-Dmdep.outputFile={found}", "compile", "dependency:build-classpath",
    ]  # fmt: skip
    try:
        made = subprocess.run(command, capture_output=True, text=True, timeout=MAVEN_SECONDS)
    except subprocess.TimeoutExpired as late:
        raise ItsUnavailableError(f"Maven has not fetched Debezium {version} within {MAVEN_SECONDS} s") from late
    if made.returncode != 0:
        raise ItsUnavailableError(_reason(version, made.stdout + made.stderr))
    found.rename(stamp)


def _choices(version: str) -> list[str]:
    """The profile and properties of the project file which fit the version."""
    match = re.fullmatch(r"3\.(\d+)\.\d+\.\w+", version)
    minor = int(match[1]) if match else -1
    if minor == 3:
        return [f"-Ddebezium.version={version}", "-Pjunit4"]
    if minor >= 5:
        return [f"-Ddebezium.version={version}", "-Dopenlineage.version=3.5.0.Final", "-Pjupiter"]
    raise ItsUnavailableError(f"no way to run the tests of Debezium {version} is known: 3.3.x.Final, or 3.5.0.Final on")


def _reason(version: str, output: str) -> str:
    """One line of what Maven said: the first that tells more than that there are problems."""
    lines = [_MARKS.sub("", line).strip() for line in output.splitlines() if "[ERROR]" in line]
    telling = [line for line in lines if line and "problems were encountered" not in line] or [f"said: {output[-200:]}"]
    unreachable = next((line for line in telling if _NO_NETWORK.search(line)), None)
    if unreachable is not None:
        return f"Maven cannot reach its repository for Debezium {version}: {unreachable[:300]}"
    return f"Maven has no class path for Debezium {version}: {telling[0][:300]}"


def _unpack(tests: Path, resources: Path) -> tuple[str, ...]:
    """The names of the test classes; resources go to a folder, because some tests want them as files."""
    with zipfile.ZipFile(tests) as archive:
        names = archive.namelist()
        for name in names:
            if not name.endswith((".class", "/")) and not name.startswith("META-INF"):
                archive.extract(name, resources)
    prefix = PACKAGE.replace(".", "/")
    tests_of = [name[len(prefix) : -len(".class")] for name in names if name.startswith(prefix)]
    return tuple(sorted(name for name in tests_of if name.endswith("IT") and "$" not in name and "/" not in name))
