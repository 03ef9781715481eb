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
for path in run model; do
  printf 'Where is Ulm?\n\n2 + 2?\n' |
    "$tessera" sample "$folder/$path" --chat --temperature 0 --threads 1 >"$folder/out" 2>"$folder/log" ||
    wrong "sample $path ends with $?: $(tail -2 "$folder/log")"
  [ "$(cat "$folder/out")" = $'Danube.\n4' ] || wrong "$path answers $(cat "$folder/out")"
  printf 'Where is Ulm?\n' | "$tessera" sample "$folder/$path" --chat --temperature 0 --threads 1 --stop ube >"$folder/out" \
    2>"$folder/log" || wrong "sample --stop ends with $?"
  [ "$(cat "$folder/out")" = Dan ] || wrong "$path with --stop answers $(cat "$folder/out")"
done

refused() {  # MESSAGE FLAG...
  local message=$1
  shift
  if "$tessera" sample "$@" </dev/null >"$folder/out" 2>"$folder/log"; then wrong "not refused: $*"; fi
  grep -qF -- "$message" "$folder/log" || wrong "sample $* says $(cat "$folder/log")"
}
refused "--chat reads prompts from standard input" "$folder/run" --chat --prompt Hello
rm "$folder/model/chat_template.jinja"
refused "the tokenizer has no chat template" "$folder/model" --chat

[ $failures = 0 ] || exit 1
echo "chat_test: done"
