#!/bin/bash
# pipeline_test.sh TESSERA: pipelines as processes have the bits of threads; a run that is killed goes on on other pipelines,
# and on one device, with the losses of a run that nothing disturbed.
set -euo pipefail
tessera=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0
wrong() { echo "pipeline_test: $*" >&2; failures=$((failures + 1)); }
for i in $(seq 1 700); do echo "line $((i * 7919 % 1000))"; done >"$folder/text.txt"
digest() { "$tessera" inspect "$folder/$1" --digest; }

flags=(train --preset gpt2-tiny --dropout 0.1 --threads 1 --data "$folder/text.txt" --micro-batch-size 1 --global-batch-size 8)
for mesh in "4 --pipeline-model-parallel-size 2 --tensor-model-parallel-size 2" \
  "2 --pipeline-model-parallel-size 2 --pipeline-schedule zb-v" \
  "4 --pipeline-model-parallel-size 4 --pipeline-schedule zb-h1" \
  "4 --pipeline-model-parallel-size 2 --pipeline-schedule interleaved --zero-2-memory-optimization"; do
  devices=${mesh%% *} rest=${mesh#* }
  # shellcheck disable=SC2086
  for start in "" "launch -n $devices --"; do
    [ -n "$start" ] && count=() || count=(--devices "$devices")
    "$tessera" $start "${flags[@]}" --steps 5 $rest "${count[@]}" --output "$folder/${start:0:1}run" >"$folder/log" 2>&1 ||
      { wrong "'$start $mesh' ends with $?: $(tail -2 "$folder/log")"; continue 2; }
  done
  [ "$(digest run)" = "$(digest lrun)" ] || wrong "threads and processes differ with '$mesh'"
  rm -r "$folder/run" "$folder/lrun"
done

# Steps that take a while, so that the kill comes among them.
flags+=(--layers 8 --context 64 --steps 12 --save-every 1 --keep-last 2 --resume auto)
losses() { grep '"kind":"train"' "$folder/$1/metrics.jsonl" | sed -E 's/.*"step":([0-9]+),"loss":([0-9.e+-]+).*/\1 \2/'; }
"$tessera" "${flags[@]}" --output "$folder/whole" >"$folder/log" 2>&1 || wrong "one device fails: $(tail -2 "$folder/log")"
killed() { # STEP RANKS FLAG...: its first rank, when the line of that step is there
  local step=$1 count=$2 launcher ranks code=0 i
  shift 2
  "$tessera" launch -n "$count" -- "${flags[@]}" "$@" --output "$folder/parts" >"$folder/log" 2>&1 &
  launcher=$!
  for ((i = 0; i < 1200; ++i)); do
    ! grep -q "\"kind\":\"train\",\"step\":$step," "$folder/parts/metrics.jsonl" 2>/dev/null || break
    sleep 0.05
  done
  # Ranks are children of mpirun, and so grandchildren of the launch.
  ranks=($(pgrep -P "$(pgrep -P $launcher | tail -1)")) && kill -KILL "${ranks[0]}" || wrong "no rank is there to kill at step $step"
  wait $launcher || code=$?
  [ $code = 137 ] || wrong "a run whose rank is killed at step $step ends with $code: $(tail -2 "$folder/log")"
  [ "$(losses parts | tail -1 | cut -d' ' -f1)" -lt 12 ] || wrong "the run was over before it was killed"
}
killed 3 2 --pipeline-model-parallel-size 2 --pipeline-schedule zb-v
killed 7 4 --pipeline-model-parallel-size 4 --zero-1-memory-optimization
"$tessera" "${flags[@]}" --devices 2 --pipeline-model-parallel-size 2 --pipeline-schedule gpipe --output "$folder/parts" \
  --exit-interval 2 >"$folder/log" 2>&1 || wrong "a resume on another pipeline fails: $(tail -2 "$folder/log")"
"$tessera" "${flags[@]}" --output "$folder/parts" >"$folder/log" 2>&1 ||
  wrong "a resume on one device fails: $(tail -2 "$folder/log")"
far=$(paste <(losses whole) <(losses parts) |
  awk '{ d = ($2 - $4) / $2; d = d < 0 ? -d : d; if ($1 != $3 || d > 1e-5) print "step " $1 ": " $2 ", " $4 }')
[ -z "$far" ] && [ "$(losses parts | wc -l)" = 12 ] || wrong "losses differ from those of one device: $far"
[ $failures = 0 ] && echo "pipeline_test: all as it should be"
