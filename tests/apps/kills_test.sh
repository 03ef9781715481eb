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
  exec "$tessera" preprocess_data --input "$folder/$1.jsonl" --output-prefix "$folder/made/out" --workers 1 --overwrite
}
inputs_of_preprocess() {
  for ((i = 0; i < 4000; ++i)); do echo "{\"text\": \"line $i of a text with some words to write\"}"; done >"$folder/a.jsonl"
  sed 's/line/another line/' "$folder/a.jsonl" >"$folder/b.jsonl"
}

# The script a is compiled already and stays so; b is compiled anew each time, by a compiler that every other time has no end.
compile_of() {
  export XDG_CACHE_HOME=$folder/made TMPDIR=$folder/temporary CXX=$folder/compiler
  comm -23 <(find "$folder/made" -type f ! -path '*.partial-*' | sort) "$folder/a.files" | xargs -rd '\n' rm
  exec "$(dirname "$tessera")/rapidformer" --user-script "$folder/$1.cpp"
}
inputs_of_compile() {
  local script
  for script in a b; do
    printf '#include <regex>\nint main() { return std::regex_match("%s", std::regex(".*")) ? 0 : 1; }\n' $script >"$folder/$script.cpp"
  done
  touch "$folder/a.files"
  cat >"$folder/compiler" <<'COMPILER'
#!/bin/sh
case "$*" in *-MMD*) [ ! -e "${0%/*}/endless" ] || sleep 600 ;; esac
c++ "$@"
COMPILER
  chmod +x "$folder/compiler"
  (compile_of a) >"$folder/log" 2>&1 || wrong "a script does not compile: $(cat "$folder/log")"
  find "$folder/made" -type f | sort >"$folder/a.files"
}

# A digest of all that was made under its name.
state() { (cd "$folder/made" && find . -type f ! -path '*.partial-*' -print0 | sort -z | xargs -0 sha256sum | sha256sum); }
unfinished() { find "$folder/made" -path '*.partial-*' && find "$folder/temporary" -mindepth 1; }
# Waits until the command and all that it started are gone, 20 seconds at most.
ends() {
  local try
  for ((try = 0; try < 200; ++try)); do
    grep -qsaFf <(printf '%s/' "$folder") /proc/[0-9]*/cmdline || return 0
    sleep 0.1
  done
  wrong "these go on: $(grep -hsaFf <(printf '%s/' "$folder") /proc/[0-9]*/cmdline | tr '\0' ' ')"
}

campaign() { # NAME: kills runs of NAME_of at any moment
  local command=$1_of began took run found lost=0 killed=0 try process
  local -A whole=()
  rm -rf "$folder/made" "$folder/temporary" && mkdir "$folder/made" "$folder/temporary"
  "inputs_of_$1"
  for run in a b; do
    began=$(now)
    ($command $run) >"$folder/log" 2>&1 || wrong "$1 fails: $(cat "$folder/log")"
    took=$((($(now) - began) / 1000))  # microseconds
    whole[$(state)]=$run
  done
  if [ $1 = compile ]; then  # a program without its list of headers is compiled again
    find "$folder/made" -name '*.headers' | grep -vxFf "$folder/a.files" | xargs -d '\n' rm
    whole[$(state)]=unlisted
  fi
  [ ${#whole[@]} -ge 2 ] || wrong "both inputs of $1 give the same"
  for ((try = 0; killed < kills; ++try)); do
    [ $try -lt $((20 * kills)) ] || wrong "$1: of $try kills $killed came before the command had ended"
    run=$([ $1 != compile ] && [ $((try % 2)) = 0 ] && echo a || echo b)
    [ $((try % 2)) = 0 ] || touch "$folder/endless"
    ($command $run) >"$folder/log" 2>&1 &
    process=$!
    sleep "$(awk -v t=$took -v r=$RANDOM 'BEGIN { printf "%.6f", t * r / 32768 / 1e6 }')"
    ! kill -KILL $process 2>/dev/null || killed=$((killed + 1))
    wait $process 2>/dev/null || true
    ends
    rm -f "$folder/endless"
    found=$(state)
    [ "${whole[$found]+there}" ] || {
      lost=$((lost + 1))
      find "$folder/made" -type f -printf '%P %s\n' >&2
    }
  done
  ($command b) >"$folder/log" 2>&1 || wrong "$1 fails after kills: $(cat "$folder/log")"
  [ "${whole[$(state)]-}" = b ] || wrong "$1 writes something else after kills"
  [ -z "$(unfinished)" ] || wrong "$1 leaves $(unfinished)"
  echo "$1: $killed kills, and $((try - killed)) that came too late; lost or half: $lost"
  [ $lost = 0 ]
}

for name in "${campaigns[@]}"; do campaign "$name"; done
