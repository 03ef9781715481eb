#!/bin/bash
# python_test.sh SCRIPT ARG...: runs a test of the Python package, which PYTHONPATH names, by Debian's python3 or PYTHON.
set -euo pipefail
python=${PYTHON:-/usr/bin/python3}
"$python" -c 'import sys; assert sys.version_info >= (3, 9)' 2>/dev/null ||
  { echo "skipped: no $python that is 3.9 or later; apt-get install python3, or set PYTHON"; exit 77; }
"$python" -c 'import numpy' 2>/dev/null ||
  { echo "skipped: $python has no numpy; apt-get install python3-numpy"; exit 77; }
exec "$python" -B "$@"
