#!/bin/bash
# Trains on RANKS processes of this machine, one for each device, as the tutorial does: each has a folder device<i> with
# its log, train.log<i>, and its environment, env<i>.log. Ends when all have ended.
set -euo pipefail
if [ $# -lt 2 ]; then
  cat >&2 <<'END'
bash run.sh DATA RANKS [FLAG...]
  DATA   wmt14.fr_en.txt of `tessera prepare wmt14`
  RANKS  processes: 2 or 8, for which there is a rank table here; others with RANK_TABLE_FILE
  FLAG   of wmt_transformer, such as --mp 2 (default: RANKS)
For example: bash run.sh /path/wmt14.fr_en.txt 8
END
  exit 2
fi
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
DATA=$(realpath -- "$1")
RANKS=$2
shift 2
exec bash "$HERE/run_cluster.sh" "$DATA" "${RANK_TABLE_FILE:-$HERE/rank_table_${RANKS}pcs.json}" "$RANKS" 0 "$RANKS" "$@"
