#!/bin/bash
# out_of_memory_test.sh TESSERA: runs in ever less memory end well, or with code 5 and an error that says what was wanted.
set -euo pipefail
tessera=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
wrong() { printf 'out_of_memory_test: %s\n' "$*" >&2; cat "$folder/err" >&2 || true; exit 1; }
for ((i = 0; i < 200; ++i)); do echo "line $i of a text to train on, which is read again and again"; done >"$folder/text.txt"

# limited KIB WORD...: the command with so much address space
limited() (ulimit -v "$1"; shift; exec timeout 60 "$tessera" "$@" >"$folder/out" 2>"$folder/err")

# The least in which the program and its libraries load at all.
least=20000
until limited $least version 2>/dev/null; do
  least=$((least + 4000))
  [ $least -lt 2000000 ] || wrong "nothing runs in 2 GB"
done

short=0 done=0 inside=0
# ends_well KIB WORD...
ends_well() {
  local code=0
  limited "$@" 2>/dev/null || code=$?
  case $code in
    0) done=$((done + 1)) ;;
    5) short=$((short + 1))
      [ "$(grep -c "^error: " "$folder/err")" = 1 ] || wrong "in $1 KiB '${*:2}' tells $(grep -c '^error: ' "$folder/err") errors"
      grep -qE 'refused [0-9]+ more bytes|memory of [0-9]+ MiB|one more thread|a library ended the program' "$folder/err" \
        || wrong "in $1 KiB '${*:2}' does not say what was wanted" ;;
    139) inside=$((inside + 1)) ;;  # in oneDNN, which does not look whether it has got memory for its code
    *) wrong "in $1 KiB '${*:2}' ends with code $code" ;;
  esac
}
train="train --preset gpt2-tiny --layers 1 --steps 2 --data $folder/text.txt"
for devices in 1 2; do
  for ((kib = least; kib < least + 200000; kib += devices * 8000)); do
    rm -rf "$folder/run"
    ends_well $kib $train --output "$folder/run" --threads 2 --devices $devices
  done
  ends_well 4000000 $train --output "$folder/run$devices" --threads 2 --devices $devices
done
# Those that do not measure the processor first make their first product behind the arena.
crashed=$inside
for ((kib = least; kib < least + 100000; kib += 5000)); do
  ends_well $kib sample "$folder/run1" --prompt line --tokens 2 --threads 1
  ends_well $kib verify --layers 1 --width 16 --heads 2 --context 16 --vocab-size 32 --devices 1 --steps 1 --threads 1
done
[ $inside = $crashed ] || wrong "sample or verify crashed $((inside - crashed)) times"
[ $short -gt 0 ] && [ $done -gt 0 ] && [ $inside -lt $short ] || wrong "$short runs lacked memory, $done did not, and $inside crashed"
ends_well 2000000 train --preset gpt2-small --width 24000 --data "$folder/text.txt" --output "$folder/large" --steps 1
grep -q 'cannot be reserved' "$folder/err" || wrong "an arena that is too large is not told as such"
