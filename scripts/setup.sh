#!/bin/sh
# Finds a Python for the checkout and hands over to scripts/bootstrap.py, which does the set-up.
#
#   setup.sh venv     the virtual environment with all packages
#   setup.sh stack    that, and what no Python package brings: libpython, Prometheus, Alertmanager
#   setup.sh tests    that, and TensorRT for RTX in an environment of its own
#
# PYTHON=/path/to/python chooses one; otherwise the first of python3, python3.12, python3.11 that is 3.11 or 3.12
# (Triton's wheel has no other), else any newer one, with which everything but the bundled stack works.
set -eu
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)

# A name on PATH may be a shim that only prints an error, so each candidate is run.
is_between() {
    "$1" -c "import sys; sys.exit(not ($2) <= sys.version_info[:2] <= ($3))" >/dev/null 2>&1
}

if [ -n "${PYTHON:-}" ]; then
    if is_between "$PYTHON" "3, 11" "3, 99"; then
        exec "$PYTHON" "$here/bootstrap.py" "$@"
    fi
    echo "set-up: PYTHON=$PYTHON is not a working Python 3.11 or newer" >&2
    exit 1
fi
# An environment that is there keeps the Python it was made with.
made_with=$("$here/../.venv/bin/python" -c 'import sys; print(sys._base_executable)' 2>/dev/null || true)
for candidate in ${made_with:+"$made_with"} python3 python3.12 python3.11; do
    if is_between "$candidate" "3, 11" "3, 12"; then
        exec "$candidate" "$here/bootstrap.py" "$@"
    fi
done
for candidate in python3 python3.13 python3.14; do
    if is_between "$candidate" "3, 13" "3, 99"; then
        exec "$candidate" "$here/bootstrap.py" "$@"
    fi
done
echo "set-up: no Python 3.11 or 3.12 found; install one (Debian 12, Ubuntu 24.04: apt-get install python3) or set PYTHON" >&2
exit 1
