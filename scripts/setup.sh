#!/usr/bin/env bash
# Create the development environment: setup.sh FOLDER
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=$1

# A name on the PATH may be a stub that fails, so each candidate has to answer.
find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3.11 python3.12 python3.13 python3; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "setup: no Python 3.11 or newer was found; install one, or name it with make setup PYTHON=..." >&2
    return 1
}

python=$(find_python)
if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    echo "setup: $python lacks its venv module; on Debian and Ubuntu: apt-get install python$version-venv" >&2
    exit 1
fi
if ! "$folder/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    "$python" -m venv --clear "$folder"
fi
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --requirement requirements-dev.lock
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
