"""`make debezium-its`: runs chosen classes and prints a table; `--help` lists the options."""

from __future__ import annotations

import argparse
import fnmatch
import re
import sys
from pathlib import Path

from tests.debezium_its.jars import ItsUnavailableError, prepare, with_sources
from tests.debezium_its.machine import run_class
from tests.debezium_its.results import table

FAST = (
    "DatatypesFromSnapshotIT", "DatatypesFromStreamingIT", "CaseSensitivenessIT", "TablesWithoutPrimaryKeyIT",
    "TablesWithUniqueIndexOnlyIT", "SQLServerNumericColumnIT", "SqlServerBinaryModeIT", "SnapshotWithSelectOverridesIT",
    "SqlServerSchemaNameAdjustmentModeIT", "SignalsIT", "SqlServerConnectorMultiPartitionModeIT",
    "EventProcessingFailureHandlingIT",
)  # fmt: skip
"""Types, keys, snapshots, streaming, signals: under three minutes."""
FAILED, UNAVAILABLE = 1, 2


def main() -> int:
    """0 when all passed, 1 when a test failed, 2 (with `--optional` 0) when the tests cannot be run here."""
    options = _options()
    folder = options.folder.resolve() / options.version
    try:
        jars = prepare(options.version, folder)
        if options.sources is not None:
            jars = with_sources(jars, options.sources, folder / "sources")
        names = chosen(options.classes, jars.classes)
    except ItsUnavailableError as missing:
        sys.stderr.write(f"debezium-its: not run: {missing}\n")
        return 0 if options.optional else UNAVAILABLE
    pattern = "|".join(fnmatch.translate(test) for test in options.tests.split(",")) if options.tests else ".*"
    results = []
    for name in names:
        sys.stderr.write(f"{name} … ")
        sys.stderr.flush()
        result = run_class(jars, name, _java_pattern(pattern), folder, seconds=options.seconds)
        sys.stderr.write(f"{result.count('passed')} of {len(result.tests)} passed in {result.seconds:.0f} s\n")
        results.append(result)
    sys.stdout.write(f"Debezium {options.version}\n\n{table(results)}\n")
    return 0 if all(result.good for result in results) else FAILED


def chosen(wanted: str, classes: tuple[str, ...]) -> list[str]:
    """The classes meant by `fast`, `all`, or by names and patterns with * between commas, in the order given."""
    names: dict[str, None] = {}
    for word in wanted.replace(",", " ").split():
        found = list({"fast": FAST, "all": classes}.get(word) or fnmatch.filter(classes, word))
        if not found:
            raise ItsUnavailableError(f"no test class {word}; there are: {', '.join(classes)}")
        names.update(dict.fromkeys(found))
    return [name for name in names if name in classes]


def _java_pattern(pattern: str) -> str:
    """Python's translation of a glob, in the words of Java's regular expressions."""
    return re.sub(r"\(\?s:|\\Z", lambda match: "(?:" if match[0] == "(?s:" else "", pattern)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make debezium-its", description=__doc__)
    parser.add_argument("--classes", default="fast", help="fast (default), all, or names and patterns, with commas")
    parser.add_argument("--tests", default="", help="only tests of these names or patterns, with commas")
    parser.add_argument("--version", default="3.3.1.Final", help="of Debezium (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=3600, help="limit for one class (default: %(default)s)")
    parser.add_argument("--sources", type=Path, help="folder of Java classes that take the place of Debezium's")
    parser.add_argument("--optional", action="store_true", help="where they cannot be run, say so and end with 0")
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path("build/debezium-its"),
        help="for jars, logs and scratch (default: %(default)s)",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
