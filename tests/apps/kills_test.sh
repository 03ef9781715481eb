#!/bin/bash
# kills_test.sh TESSERA [KILLS [CAMPAIGN...]]: commands that write files, killed at random moments. What was there is there whole,
# or what is new is; the next command leaves nothing over. CAMPAIGN: export, preprocess, compile (rapidformer beside TESSERA).
set -euo pipefail
tessera=$1 kills=${2:-4}
shift $(($# < 2 ? $# : 2))
campaigns=(${@:-export preprocess compile})
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
wrong() { printf 'kills_test: %s\n' "$*" >&2; exit 1; }
now() { date +%s%N; }

# Each campaign: a command, by one of two inputs a and b; it writes into $folder/made.
export_of() { exec "$tessera" export "$folder/run-$1" --output "$folder/made/out" --overwrite; }
inputs_of_export() {
  local run
  for ((i = 0; i < 300; ++i)); do echo "line $i of a text to train on"; done >"$folder/text.txt"
  for run in a b; do
    "$tessera" train --preset gpt2-tiny --width 256 --heads 4 --threads 1 --data "$folder/text.txt" --output "$folder/run-$run" \
      --seed ${#run}$([ $run = a ] || echo 7) --steps 1 --f32-products fma >"$folder/log" 2>&1 || wrong "no run: $(cat "$folder/log")"
  done
}

preprocess_of() {
  exec "$tessera" preprocess_data --input "$folder/$1.jsonl" --output-prefix "$folder/made/out" --tokenizer-type CharTokenizer \
    --workers 1 --overwrite
}
inputs_of_preprocess() {
  local line
  for ((i = 0; i < 4000; ++i)); do echo "{\"text\": \"line $i of a text with some words to write\"}"; done >"$folder/a.jsonl"
  sed 's/line/another line/' "$folder/a.jsonl" >"$folder/b.jsonl"
}

# What the script a left in the cache stays, and b is compiled anew each time.
compile_of() {
  export XDG_CACHE_HOME=$folder/made TMPDIR=$folder/tmp
  [ ! -e "$folder/a.files" ] || find "$folder/made" -type f ! -path '*.partial-*' | grep -vxFf "$folder/a.files" | xargs -r rm -f
  exec "$(dirname "$tessera")/rapidformer" --user-script "$folder/$1.cpp"
}
inputs_of_compile() {
  local script
  for script in a b; do
    printf '#include <iostream>\nint main() { std::cout << "%s\\n"; }\n' $script >"$folder/$script.cpp"
  done
  mkdir "$folder/tmp"
}

# state: a digest of all that was made under its name
state() { (cd "$folder/made" && find . -type f ! -path '*.partial-*' -print0 | sort -z | xargs -0 sha256sum | sha256sum); }
