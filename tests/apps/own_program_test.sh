#!/bin/bash
# own_program_test.sh PROGRAM: a program with a family of its own is the whole command also where the system sends signals.
set -euo pipefail
program=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
wrong() { printf 'own_program_test: %s\n' "$*" >&2; cat "$folder/err" >&2 || true; exit 1; }
for ((i = 0; i < 200; ++i)); do echo "line $i of a text to train on"; done >"$folder/text.txt"
train=("$program" train --family primer --layers 1 --width 16 --heads 2 --context 16 --threads 1 --log-every 1
  --data "$folder/text.txt")

# Nobody reads what it prints: it trains to its end and saves.
{ code=0; "${train[@]}" --steps 30 --output "$folder/pipe" 2>"$folder/err" || code=$?; echo $code >"$folder/code"; } | true
[ "$(cat "$folder/code")" = 141 ] || wrong "a closed pipe ends it with code $(cat "$folder/code")"
[ -d "$folder/pipe/checkpoints/step-00000030" ] || wrong "a closed pipe ends the training"

# A file may not grow: a save fails with words.
code=0
(ulimit -f 8; exec "${train[@]}" --steps 3 --output "$folder/limit" >/dev/null 2>"$folder/err") || code=$?
[ "$code" = 5 ] || wrong "a limit on the size of files ends it with code $code"
grep -q '^error: .*File too large' "$folder/err" || wrong "and does not say why"

# Standard output is closed: no file gets its number.
code=0
"${train[@]}" --steps 3 --output "$folder/closed" >&- 2>"$folder/err" || code=$?
[ "$code" = 5 ] || wrong "a closed standard output ends it with code $code"
[ -d "$folder/closed/checkpoints/step-00000003" ] || wrong "a closed standard output ends the training"
