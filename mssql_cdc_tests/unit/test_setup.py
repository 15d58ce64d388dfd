"""`tools/setup.sh` on machines that lack something, with stand-ins for apt, Python and Java."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "setup.sh"
TOOLS = ("bash", "cat", "chmod", "dirname", "grep", "head", "id", "mkdir", "rm", "sed", "sudo", "touch")

APT_GET = """
echo "apt-get $*" >> "$BIN/../calls"
[ "$1" = install ] || exit 0
for package in "$@"; do
  case "$package" in
    python3*-venv) touch "$BIN/../${package%-venv}.ensurepip" ;;
    python3*) cp "$BIN/../python" "$BIN/$package" ;;
    openjdk-*) cp "$BIN/../java" "$BIN/java" ;;
  esac
done
"""
APT_CACHE = 'grep -qx "$2" "$BIN/../available"'
JAVA = """echo 'openjdk version "21.0.1" 2025-01-01' >&2"""
PYTHON = """
name="$(basename "$0")"
case "$*" in
  *version_info*) [ "$(cat "$BIN/../$name.version" 2>/dev/null)" != old ] ;;
  *ensurepip*) [ -e "$BIN/../$name.ensurepip" ] ;;
  "-m venv "*)
    mkdir -p "$3/bin"; touch "$3/pyvenv.cfg"
    printf '#!/bin/sh\\n[ -e "%s/pip" ]\\n' "$3" > "$3/bin/python"
    printf '#!/bin/sh\\nexit 0\\n' > "$3/bin/mssql-cdc"
    chmod +x "$3/bin/python" "$3/bin/mssql-cdc"
    [ -e "$BIN/../$name.ensurepip" ] && touch "$3/pip" ;;
esac
"""


@dataclass(frozen=True)
class Machine:
    """A machine: its commands and what apt can install."""

    folder: Path

    @property
    def venv(self) -> Path:
        return self.folder / "venv"

    @property
    def installed(self) -> set[str]:
        """What apt was told to install."""
        calls = (self.folder / "calls").read_text(encoding="utf-8").splitlines()
        lines = [line.split() for line in calls if line.startswith("apt-get install")]
        return {word for line in lines for word in line[2:] if not word.startswith("-")}

    def command(self, name: str, text: str, *, folder: str = "bin") -> None:
        path = self.folder / folder / name
        path.write_text(f"#!/usr/bin/env bash\n{text}\n", encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def python(self, name: str, *, old: bool = False, ensurepip: bool = True) -> None:
        """Install a Python."""
        self.command(name, PYTHON)
        (self.folder / f"{name}.version").write_text("old" if old else "new", encoding="utf-8")
        if ensurepip:
            (self.folder / f"{name}.ensurepip").touch()

    def set_up(self) -> subprocess.CompletedProcess[str]:
        binaries = self.folder / "bin"
        environment = {"PATH": str(binaries), "BIN": str(binaries), "HOME": str(self.folder)}
        return subprocess.run(
            [binaries / "bash", SCRIPT, self.venv], env=environment, capture_output=True, text=True, check=False
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Debian 12 with Java 21 and without a Python."""
    (tmp_path / "bin").mkdir()
    for name in (*TOOLS, "basename", "cp", "env"):
        found = shutil.which(name)
        if found is not None:
            (tmp_path / "bin" / name).symlink_to(found)
    made = Machine(tmp_path)
    made.command("apt-get", APT_GET)
    made.command("apt-cache", APT_CACHE)
    made.command("java", JAVA)
    made.command("java", JAVA, folder=".")
    made.command("python", PYTHON, folder=".")
    if os.getuid() != 0:
        (tmp_path / "bin" / "sudo").unlink(missing_ok=True)
        made.command("sudo", '"$@"')
    available = ["python3.11", "python3.11-venv", "openjdk-21-jre-headless"]
    (tmp_path / "available").write_text("\n".join(available), encoding="utf-8")
    return made


def test_a_machine_without_python_gets_one_with_venv(machine: Machine) -> None:
    done = machine.set_up()
    assert done.returncode == 0, done.stderr
    assert machine.installed >= {"python3.11", "python3.11-venv"}
    assert done.stdout.endswith("Ready.\n")


def test_a_machine_whose_python_is_too_old_gets_another_one(machine: Machine) -> None:
    machine.python("python3", old=True)
    assert machine.set_up().returncode == 0
    assert machine.installed >= {"python3.11", "python3.11-venv"}


def test_a_machine_whose_system_has_no_newer_python_is_told_which_one_it_needs(machine: Machine) -> None:
    (machine.folder / "available").write_text("python3", encoding="utf-8")
    machine.python("python3", old=True)
    machine.command("apt-get", 'echo "apt-get $*" >> "$BIN/../calls"')
    done = machine.set_up()
    assert done.returncode == 2
    assert "Found no Python 3.11 or newer" in done.stderr
    assert not machine.venv.exists()


def test_a_python_without_ensurepip_gets_the_package_of_its_own_version(machine: Machine) -> None:
    machine.python("python3.11", ensurepip=False)
    assert machine.set_up().returncode == 0
    assert "python3.11-venv" in machine.installed


def test_an_environment_without_pip_is_made_anew(machine: Machine) -> None:
    machine.python("python3.11", ensurepip=False)
    machine.venv.joinpath("bin").mkdir(parents=True)
    machine.venv.joinpath("pyvenv.cfg").touch()
    machine.venv.joinpath("bin", "python").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    machine.venv.joinpath("bin", "python").chmod(0o755)
    assert machine.set_up().returncode == 0


def test_a_system_without_java_17_gets_java_21(machine: Machine) -> None:
    machine.python("python3.11")
    (machine.folder / "bin" / "java").unlink()
    assert machine.set_up().returncode == 0
    assert "openjdk-21-jre-headless" in machine.installed


def test_a_system_without_apt_is_told_what_to_install(machine: Machine) -> None:
    (machine.folder / "bin" / "apt-get").unlink()
    done = machine.set_up()
    assert done.returncode == 2
    assert "Python 3.11 or newer with venv" in done.stderr
    assert "|" not in done.stderr
