#!/bin/bash
# kills_test.sh TESSERA [KILLS]: `export --overwrite`, killed at random moments. What was there is there whole, or what is new is;
# the next command leaves nothing over.
set -euo pipefail
tessera=$1 kills=${2:-12}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
wrong() { printf 'kills_test: %s\n' "$*" >&2; exit 1; }

for ((i = 0; i < 300; ++i)); do echo "line $i of a text to train on"; done >"$folder/text.txt"
for run in a b; do
  "$tessera" train --preset gpt2-tiny --width 256 --heads 4 --threads 1 --data "$folder/text.txt" --output "$folder/run-$run" \
    --seed ${#run}$([ $run = a ] || echo 7) --steps 1 --f32-products fma >"$folder/train.log" 2>&1 || wrong "no run: $(cat "$folder/train.log")"
done

# The command, by the run that it is given; what it writes lies in $folder/made.
export_of() { exec "$tessera" export "$folder/run-$1" --output "$folder/made/out" --overwrite; }
# state: a digest of all that was made under its name
state() { (cd "$folder/made" && find . -type f ! -path '*.partial-*' -print0 | sort -z | xargs -0 sha256sum | sha256sum); }
now() { date +%s%N; }

lost=0 done_first=0
campaign() { # COMMAND KILLS
  local command=$1 began took i run
  declare -A whole=()
  rm -rf "$folder/made" && mkdir "$folder/made"
  for run in a b; do
    began=$(now)
    ($command $run) >"$folder/log" 2>&1 || wrong "$command fails: $(cat "$folder/log")"
    took=$((($(now) - began) / 1000))  # microseconds
    whole[$run]=$(state)
  done
  [ "${whole[a]}" != "${whole[b]}" ] || wrong "both inputs of $command give the same"
  for ((i = 0; i < $2; ++i)); do
    run=$([ $((i % 2)) = 0 ] && echo a || echo b)
    ($command $run) >"$folder/log" 2>&1 &
    local process=$!
    sleep "$(awk -v t=$took -v r=$RANDOM 'BEGIN { printf "%.6f", t * r / 32768 / 1e6 }')"
    kill -KILL $process 2>/dev/null || done_first=$((done_first + 1))
    wait $process 2>/dev/null || true
    local found
    found=$(state)
    [ "$found" = "${whole[a]}" ] || [ "$found" = "${whole[b]}" ] || {
      lost=$((lost + 1))
      find "$folder/made" -type f -printf '%P %s\n' >&2
    }
  done
  ($command a) >"$folder/log" 2>&1 || wrong "$command fails after kills: $(cat "$folder/log")"
  [ "$(state)" = "${whole[a]}" ] || wrong "$command writes something else after kills"
  [ -z "$(find "$folder/made" -name '*.partial-*')" ] || wrong "$command leaves $(find "$folder/made" -name '*.partial-*')"
}
campaign export_of $kills
echo "$kills kills, $done_first of them too late; lost or half: $lost"
[ $lost = 0 ]
