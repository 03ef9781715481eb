#!/bin/bash
# impostors_test.sh TESSERA IMPOSTOR [IMPOSTORS LETTERS]: processes of another user against launched runs over TCP. None
# may join, crash or end a run. Needs root, to be another user; skipped (code 77) elsewhere.
# By hand, longer: impostors_test.sh build/tessera build/impostor 20 2000
set -euo pipefail
tessera=$(realpath "$1") impostor=$(realpath "$2")
impostors=${3:-3} letters=${4:-60}
[ "$(id -u)" = 0 ] || { echo "skipped: only root can be another user"; exit 77; }
# In a network of its own, so that nobody else's runs are attacked.
if [ -z "${TESSERA_OWN_NETWORK:-}" ]; then
  unshare --net ip link set lo up 2>/dev/null || { echo "skipped: no network namespace can be made here"; exit 77; }
  TESSERA_OWN_NETWORK=1 exec unshare --net bash "$0" "$@"
fi
ip link set lo up
folder=$(mktemp -d)
trap 'kill -KILL $(jobs -p) 2>/dev/null || true; wait 2>/dev/null; rm -rf "$folder"' EXIT
wrong() { printf 'impostors_test: %s\n' "$*" >&2; tail -n 5 "$folder"/*.log >&2 || true; exit 1; }
# The other user runs a copy: this folder may be closed to it.
chmod 755 "$folder"
cp "$impostor" "$folder/impostor"
for ((i = 0; i < 100; ++i)); do echo "line $i of a text to train on, which is read again and again"; done >"$folder/text.txt"
seconds=$((60 + letters / 5))
for ((i = 0; i < impostors; ++i)); do
  setpriv --reuid 65534 --regid 65534 --clear-groups "$folder/impostor" $seconds $((letters / impostors + 1)) \
    >"$folder/impostor.$i" 2>"$folder/impostor.$i.log" &
  pids[i]=$!
done
runs=0
attacked() { for pid in "${pids[@]}"; do ! kill -0 $pid 2>/dev/null || return 0; done; return 1; }
while attacked; do
  code=0
  timeout 120 "$tessera" launch --backend tcp -n 3 -- train --preset gpt2-tiny --layers 1 --width 16 --heads 2 --context 16 \
    --steps 2 --threads 1 --global-batch-size 3 --micro-batch-size 1 --data "$folder/text.txt" \
    --output "$folder/run.$runs" --distributed-timeout 60 >"$folder/run.log" 2>&1 || code=$?
  [ $code = 0 ] || wrong "run $runs ends with the code $code"
  runs=$((runs + 1))
done
sent=0
for ((i = 0; i < impostors; ++i)); do
  wait ${pids[i]} || wrong "an impostor fails"
  read -r count _ welcomed _ <"$folder/impostor.$i"
  [ "$welcomed" = 0 ] || wrong "an impostor was welcomed"
  sent=$((sent + count))
done
[ $sent -gt 0 ] || wrong "no letter reached a rank: nothing was tried"
echo "$impostors impostors sent $sent hostile letters to $runs runs: joined 0, crashed 0, runs lost 0"
