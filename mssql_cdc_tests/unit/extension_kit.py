"""Installs tiny distributions with entry points for a test: a folder with `*.dist-info` on the path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install(
    folder: Path, distribution: str, points: Mapping[str, Mapping[str, str]], modules: Mapping[str, str] | None = None
) -> Path:
    """Write a distribution into a folder that is, or comes to be, on the path; returns the folder.

    Args:
        folder: where; made if it is not there.
        distribution: the distribution's name.
        points: per group, names and targets (`module:attribute`).
        modules: sources of modules by their names.
    """
    info = folder / f"{distribution}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n", encoding="utf-8")
    lines = [
        line
        for group, named in points.items()
        for line in (f"[{group}]", *(f"{name} = {target}" for name, target in named.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name, source in (modules or {}).items():
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    return folder
