#!/bin/bash
# Starts the ranks of one machine of several. Each machine starts its own, all with the same rank table and data:
#   on the first    bash run_cluster.sh DATA rank_table_16pcs.json 16 0
#   on the second   bash run_cluster.sh DATA rank_table_16pcs.json 16 8
# The folder with this script must be one that all machines share: checkpoints go there.
set -euo pipefail
if [ $# -lt 4 ]; then
  cat >&2 <<'END'
bash run_cluster.sh DATA RANK_TABLE RANK_SIZE RANK_START [RANKS [FLAG...]]
  DATA        wmt14.fr_en.txt of `tessera prepare wmt14`
  RANK_TABLE  the JSON file that says on which machine each rank is
  RANK_SIZE   ranks of all machines
  RANK_START  the first rank of this machine
  RANKS       ranks of this machine (8)
  FLAG        of wmt_transformer, such as --mp 2 (default: RANK_SIZE)
END
  exit 2
fi
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
BUILD=${TESSERA_BUILD:-$HERE/../../build}
PROGRAM=$(realpath -m -- "$BUILD/example_wmt_transformer")
DATA=$(realpath -m -- "$1") TABLE=$(realpath -m -- "$2") SIZE=$3 START=$4 RANKS=${5:-8}
shift $(($# < 5 ? 4 : 5))
[ -x "$PROGRAM" ] || { echo "there is no $PROGRAM; run ./dev build, or set TESSERA_BUILD to the build folder" >&2; exit 1; }
[ -f "$DATA" ] || { echo "there is no $DATA; tessera prepare wmt14 --input FOLDER --output FOLDER makes it" >&2; exit 1; }
[ -f "$TABLE" ] || { echo "there is no rank table $TABLE; there are: $(cd "$HERE" && echo rank_table_*.json)" >&2; exit 1; }

export RANK_TABLE_FILE=$TABLE RANK_SIZE=$SIZE
processes=()
trap 'kill "${processes[@]}" 2>/dev/null || true' INT TERM
for ((i = START; i < START + RANKS; i++)); do
  rm -rf "device$i"
  mkdir "device$i"
  echo "start training for device $i"
  (
    cd "device$i"
    export DEVICE_ID=$((i - START)) RANK_ID=$i
    env >"env$i.log"
    exec "$PROGRAM" --distribute=true --file_path="$DATA" --mp="$SIZE" --checkpoint=../test "$@" >"train.log$i" 2>&1
  ) &
  processes+=($!)
done

code=0
for ((i = 0; i < RANKS; i++)); do
  of_rank=0
  wait "${processes[i]}" || of_rank=$?
  [ $code != 0 ] || code=$of_rank
done
if [ $code != 0 ]; then
  echo "training failed, with code $code:"
  grep -h '^error' device*/train.log* | sort -u || tail -n 3 device*/train.log*
  exit $code
fi
echo "training success: $(tail -n 1 "device$START/train.log$START")"
