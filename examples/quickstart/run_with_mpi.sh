#!/bin/bash
# Trains on 8 ranks, each a process of mpirun, in the background: the log is in device/train.log, the model of each rank
# in device/<rank>, what each rank does in saved_graph/rank_<rank>.
set -euo pipefail
BUILD=${TESSERA_BUILD:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build}
PROGRAM=$BUILD/example_quickstart
[ -x "$PROGRAM" ] || { echo "there is no $PROGRAM; run ./dev build, or set TESSERA_BUILD to the build folder" >&2; exit 1; }
command -v mpirun >/dev/null || { echo "there is no mpirun; install openmpi-bin, or run $PROGRAM --devices 8" >&2; exit 1; }

rm -rf device saved_graph
mkdir device
cd device
ROOT=()
[ "$(id -u)" != 0 ] || ROOT=(--allow-run-as-root)
mpirun "${ROOT[@]}" --oversubscribe --bind-to none -n 8 "$PROGRAM" --checkpoints . --save-graphs ../saved_graph "$@" \
  >train.log 2>&1 &
echo "8 ranks train in the background; their log is device/train.log"
