#!/bin/bash
# Trains on RANKS processes of this machine, one for each device, as the tutorial does: each has a folder device<i> with
# its log, train.log<i>, and its environment, env<i>.log. Ends when all have ended, as run_cluster.sh says.
set -euo pipefail
if [ $# -lt 2 ] || [[ ! $2 =~ ^[1-9][0-9]{0,4}$ ]]; then
  cat >&2 <<'END'
bash run.sh DATA RANKS [FLAG...]
  DATA   wmt14.fr_en.txt of `tessera prepare wmt14`
  RANKS  processes: 2 or 8, for which there is a rank table here; others with RANK_TABLE_FILE
  FLAG   of wmt_transformer, such as --mp 2 (default: the largest of 8, 4, 2 and 1 that divides RANKS)
For example: bash run.sh /path/wmt14.fr_en.txt 8
END
  exit 2
fi
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
DATA=$1 RANKS=$2
shift 2
TABLE=${RANK_TABLE_FILE:-$HERE/rank_table_${RANKS}pcs.json}
exec bash "$HERE/run_cluster.sh" "$DATA" "$TABLE" "$RANKS" 0 "$RANKS" "$@"
