#!/bin/bash
# daily_test.sh TESSERA: pipes that close, a bench that is stopped, files that are not ours.
set -euo pipefail
tessera=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
wrong() { printf 'daily_test: %s\n' "$*" >&2; cat "$folder/err" >&2 || true; exit 1; }
for ((i = 0; i < 200; ++i)); do echo "line $i of a text to train on"; done >"$folder/text.txt"
cp "$folder/text.txt" "$folder/same.txt"

# A reader that has seen enough is told nothing.
for words in "train --help" "help switches" "plan --preset gpt2-tiny --vocab-size 64"; do
  { code=0; "$tessera" $words 2>"$folder/err" || code=$?; echo $code >"$folder/code"; } | true
  [ ! -s "$folder/err" ] || wrong "'$words | true' is told an error"
  case "$(cat "$folder/code")" in 0 | 141) ;; *) wrong "'$words | true' ends with $(cat "$folder/code")" ;; esac
done
if [ -w /dev/full ]; then
  code=0
  "$tessera" train --help >/dev/full 2>"$folder/err" || code=$?
  [ $code = 5 ] && grep -q '^error: not all output could be written' "$folder/err" || wrong "a full disk is not told"
fi

# What was measured until it is stopped is printed, and written.
bench=("$tessera" bench --preset gpt2-tiny --data "$folder/text.txt" --threads 1 --steps 10 --turns 100000 --switches bf16)
"${bench[@]}" --html "$folder/page.html" --results "$folder/results.json" >"$folder/out" 2>"$folder/err" &
bench_process=$!
for ((i = 0; i < 1200; ++i)); do
  ! grep -q 's a step' "$folder/err" || break
  sleep 0.1
done
kill -TERM $bench_process
code=0
wait $bench_process || code=$?
[ $code = 130 ] || wrong "a stopped bench ends with $code"
grep -q 'seconds a step' "$folder/out" || wrong "a stopped bench prints no table"
grep -q '^stopped on request' "$folder/out" || wrong "a stopped bench does not say so"
grep -q '"stopped": true' "$folder/results.json" || wrong "nor do its results"
grep -q 'stopped on request' "$folder/page.html" || wrong "nor does its page"

# Files of others stay, files of ours are replaced.
train=("$tessera" train --preset gpt2-tiny --layers 1 --threads 1 --steps 1 --data "$folder/text.txt")
refused() { # FILE WORDS...
  local file=$1 before code=0
  shift
  before=$(md5sum "$file")
  "$@" >"$folder/out" 2>"$folder/err" || code=$?
  [ $code = 2 ] || wrong "'$*' ends with $code"
  grep -q 'exists and is not .* that tessera wrote; name another file, or remove it' "$folder/err" || wrong "'$*' says something else"
  [ "$before" = "$(md5sum "$file")" ] || wrong "'$*' has changed $file"
}
echo mine >"$folder/mine"
cp "$folder/mine" "$folder/mine.svg"
cp "$folder/mine" "$folder/mine.html"
refused "$folder/text.txt" "${train[@]}" --output "$folder/a" --profile "$folder/text.txt"
refused "$folder/mine" "$tessera" plan --preset gpt2-tiny --vocab-size 64 --auto --devices 1 --write-plan "$folder/mine"
refused "$folder/mine" "$tessera" plan --preset gpt2-tiny --vocab-size 64 --auto --devices 1 --html "$folder/mine"
refused "$folder/mine" "${bench[@]}" --results "$folder/mine"
refused "$folder/page.html" "${bench[@]}" --results "$folder/page.html"
"${train[@]}" --output "$folder/b" --profile "$folder/trace.json" >"$folder/out" 2>"$folder/err" || wrong "a profile is not written"
"${train[@]}" --output "$folder/c" --profile "$folder/trace.json" >"$folder/out" 2>"$folder/err" || wrong "a profile is not written again"
refused "$folder/mine.svg" "$tessera" chart "$folder/b" --output "$folder/mine.svg"
refused "$folder/mine.html" "$tessera" report "$folder/b" --output "$folder/mine.html"
for i in 1 2; do
  "$tessera" chart "$folder/b" --output "$folder/losses.svg" >"$folder/out" 2>"$folder/err" || wrong "chart $i"
  "$tessera" report "$folder/b" --output "$folder/report.html" >"$folder/out" 2>"$folder/err" || wrong "report $i"
done
cmp -s "$folder/text.txt" "$folder/same.txt" || wrong "the text has changed"

# Several texts, of several prompts, each up to a stop.
sample=("$tessera" sample "$folder/b" --threads 1)
printf 'line\na text\n' >"$folder/prompts"
"${sample[@]}" --tokens 6 --prompts "$folder/prompts" --samples 2 >"$folder/out" 2>"$folder/err" || wrong "several texts"
[ "$(grep -c '^--- prompt [12] of 2, sample [12] of 2$' "$folder/out")" = 4 ] || wrong "not four texts are told"
"${sample[@]}" --tokens 6 --prompts "$folder/prompts" --samples 2 --output "$folder/texts.jsonl" >"$folder/out" 2>"$folder/err" || wrong "texts into a file"
[ "$(grep -c '^{"prompt":"line","text":"' "$folder/texts.jsonl")" = 2 ] || wrong "the file lacks texts of the first prompt"
[ "$(wc -l <"$folder/texts.jsonl")" = 4 ] || wrong "the file has not four lines"
"${sample[@]}" --tokens 6 --prompts "$folder/prompts" --samples 2 --rows 1 --output "$folder/single.jsonl" >"$folder/out" 2>"$folder/err" || wrong "texts one at a time"
cmp -s "$folder/texts.jsonl" "$folder/single.jsonl" || wrong "texts depend on how many are written at a time"
whole=$("${sample[@]}" --prompt "line" --tokens 40 2>"$folder/err")
stop=${whole:10:2}
stopped=$("${sample[@]}" --prompt "line" --tokens 40 --stop "$stop" 2>"$folder/err")
behind=${whole#line}
before=$(printf '%s' "line${behind%%"$stop"*}")  # without new lines at its end, as of any $(...)
[ "$stopped" = "$before" ] || wrong "'$stopped' is not '$whole' before '$stop'"
code=0
"${sample[@]}" --samples 2 --temperature 0 >"$folder/out" 2>"$folder/err" || code=$?
[ $code = 2 ] || wrong "samples of which all are alike are not refused"

# A run that ended before its first checkpoint does not keep its folder; one with a checkpoint does.
mkdir "$folder/started"
echo '{"kind":"train","step":1,"loss":9}' >"$folder/started/metrics.jsonl"
"${train[@]}" --output "$folder/started" >"$folder/out" 2>"$folder/err" || wrong "a folder without a checkpoint is not taken over"
grep -q 'ended before its first checkpoint; it is replaced' "$folder/out" "$folder/err" || wrong "and nothing says so"
! grep -q '"loss":9' "$folder/started/metrics.jsonl" || wrong "its losses stay"
code=0
"${train[@]}" --output "$folder/started" >"$folder/out" 2>"$folder/err" || code=$?
[ $code = 2 ] || wrong "a run with a checkpoint is written over"
