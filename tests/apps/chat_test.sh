#!/bin/bash
# chat_test.sh TESSERA: a model that has learned a dialogue answers in it, also from its export, and stops where answers end.
set -euo pipefail
tessera=$1
golden=$(cd "$(dirname "${BASH_SOURCE[0]}")/../golden/chat" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0
wrong() { echo "chat_test: $*" >&2; failures=$((failures + 1)); }

mkdir "$folder/tokenizer"
cp "$golden"/byte_level/tokenizer*.json "$folder/tokenizer"
cp "$golden/chatml.jinja" "$folder/tokenizer/chat_template.jinja"
for _ in $(seq 1 20); do
  echo '{"messages": [{"role": "user", "content": "Where is Ulm?"}, {"role": "assistant", "content": "Danube."}, {"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}]}'
done >"$folder/chat.jsonl"
"$tessera" train --preset llama-tiny --layers 1 --context 96 --dropout 0 --threads 1 --tokenizer "$folder/tokenizer" \
  --data "$folder/chat.jsonl" --held-out 0 --global-batch-size 2 --lr 1e-2 --steps 60 --output "$folder/run" \
  >"$folder/log" 2>&1 || wrong "training ends with $?: $(tail -2 "$folder/log")"
"$tessera" export "$folder/run" --output "$folder/model" >"$folder/log" 2>&1 || wrong "export: $(tail -2 "$folder/log")"
cmp -s "$golden/chatml.jinja" "$folder/model/chat_template.jinja" || wrong "the export has no chat template"
says() {  # WHAT EXPECTED FLAG...: what the command answers to standard input
  local what=$1 expected=$2
  shift 2
  "$tessera" chat "$@" --temperature 0 --threads 1 >"$folder/out" 2>"$folder/log" ||
    wrong "$what ends with $?: $(tail -2 "$folder/log")"
  [ "$(cat "$folder/out")" = "$expected" ] || wrong "$what answers $(cat "$folder/out")"
}
for path in run model; do
  printf 'Where is Ulm?\n\n2 + 2?\n' | says "$path" $'Danube.\n4' "$folder/$path"
  printf 'Where is Ulm?\n2 + 2?\n' | says "$path on two devices" $'Danube.\n4' "$folder/$path" \
    --tensor-model-parallel-size 2 --devices 2
  printf 'Where is Ulm?\n' | says "$path with --stop" Dan "$folder/$path" --stop ube
  printf 'Where is Ulm?\n/clear\nWhere is Ulm?\n' | says "$path with /clear" $'Danube.\nDanube.' "$folder/$path"
done
# A system message is a part of the dialogue, by flag and by line.
printf '/system Say 4\nWhere is Ulm?\n' | says "/system" "$(printf 'Where is Ulm?\n' |
  "$tessera" chat "$folder/run" --system "Say 4" --temperature 0 --threads 1)" "$folder/run"
printf 'Where is Ulm?\n2 + 2?\n' | says "a short context" $'Danube.\n4' "$folder/run" --context 96
printf 'Where is Ulm?\n' | "$tessera" chat "$folder/run" --context 8 --tokens 1 --threads 1 >/dev/null 2>"$folder/log" ||
  wrong "--context 8 ends with $?"
grep -q "notice: the dialogue has .* tokens, the context 8: the model sees its end alone" "$folder/log" ||
  wrong "a dialogue longer than the context says $(cat "$folder/log")"

refused() {  # MESSAGE FLAG...
  local message=$1
  shift
  if "$tessera" chat "$@" </dev/null >"$folder/out" 2>"$folder/log"; then wrong "not refused: $*"; fi
  grep -qF -- "$message" "$folder/log" || wrong "chat $* says $(cat "$folder/log")"
}
refused "--context is 97, the model's is 96; give at most that" "$folder/run" --context 97
refused "unknown flag --prompt" "$folder/run" --prompt Hello

# On a terminal Ctrl-C ends an answer that would never end, and at the prompt the command.
if command -v script >/dev/null; then
  for _ in $(seq 1 400); do printf 'Ulm '; done >"$folder/loop.txt"
  "$tessera" train --preset llama-tiny --layers 1 --context 96 --dropout 0 --threads 1 --tokenizer "$folder/tokenizer" \
    --data "$folder/loop.txt" --held-out 0 --global-batch-size 2 --lr 1e-2 --steps 20 --output "$folder/loop" \
    >"$folder/log" 2>&1 || wrong "training a loop ends with $?"
  mkfifo "$folder/keys"
  # What a script starts by & ignores SIGINT.
  env --default-signal=INT script -qec "'$tessera' chat '$folder/loop' --temperature 0 --tokens 100000000 --threads 1" /dev/null \
    <"$folder/keys" >"$folder/out" 2>&1 &
  terminal=$!
  exec 3>"$folder/keys"
  until_so() {  # WHAT CONDITION...
    local what=$1
    shift
    for _ in $(seq 1 200); do "$@" && return; sleep 0.1; done
    wrong "$what: $(head -c 100 "$folder/out") ... $(tail -c 100 "$folder/out")"
  }
  asks() { [ "$(tail -c 2 "$folder/out")" = '> ' ]; }
  writes() { [ "$(stat -c %s "$folder/out")" -gt 1000 ]; }
  gone() { ! kill -0 $terminal 2>/dev/null; }
  until_so "no prompt" asks
  printf 'Where is Ulm?\n' >&3
  until_so "no answer" writes
  printf '\003' >&3
  until_so "Ctrl-C ends no answer" asks
  printf '\003' >&3
  until_so "Ctrl-C at the prompt does not end the command" gone
  exec 3>&-
  gone || kill $terminal
  code=0
  wait $terminal || code=$?
  [ $code = 130 ] || wrong "after Ctrl-C at the prompt the command ends with $code, not 130 as of SIGINT"
fi
rm "$folder/model/chat_template.jinja"
refused "the tokenizer has no chat template" "$folder/model"

[ $failures = 0 ] || exit 1
echo "chat_test: done"
