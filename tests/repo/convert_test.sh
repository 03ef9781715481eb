#!/bin/bash
# convert_test.sh ROOT TESSERA: scripts that convert checkpoints of other programs; they need PyTorch, as the test does.
# $PYTHON: one that has it.
set -euo pipefail
python=${PYTHON:-python3}
"$python" -c "import numpy, torch" 2>/dev/null || { echo "skipped: $python has no PyTorch; PYTHON names one that has"; exit 77; }
exec "$python" "$1/tests/repo/convert_test.py" "$1" "$2"
