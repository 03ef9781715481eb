#!/bin/bash
# isa_test.sh TESSERA levels: instruction sets of the command.
# isa_test.sh TESSERA ranks: ranks on unlike machines. TESSERA_on_lesser_machine, which lies beside it, is the same command on a machine
# that has no more than TESSERA_MAX_ISA.
set -euo pipefail
tessera=$1 lesser=$1_on_lesser_machine part=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export XDG_CACHE_HOME=$folder/cache  # nothing was measured before: rank 0 does so only at the level of all
wrong() { printf 'isa_test: %s\n' "$*" >&2; tail -n 5 "$folder"/*.log >&2 || true; exit 1; }

for ((i = 0; i < 200; ++i)); do echo "line $i of a text to train on, which is read again and again"; done >"$folder/text.txt"
# train RUN STEPS [FLAG...]: the words of a command
train() { echo train --preset gpt2-tiny --threads 1 --data "$folder/text.txt" --output "$folder/$1" --steps "$2" "${@:3}"; }
isa_of() { sed -n 's/^ *"isa": "\(.*\)",*$/\1/p' "$folder/$1/summary.json"; }
digest_of() { "$tessera" inspect "$folder/$1" --digest; }

"$tessera" $(train best 3) >"$folder/best.log" 2>&1 || wrong "no run at the best level"
best=$(isa_of best)
levels() {
  [ "$best" != baseline ] || { echo "not run: this machine has one level only"; exit 77; }
  "$tessera" $(train avx2 3 --max-isa avx2) >"$folder/avx2.log" 2>&1 || wrong "no run at avx2"
  [ "$(isa_of avx2)" = avx2 ] || wrong "summary.json says '$(isa_of avx2)', not avx2"
  [ "$best" = avx2 ] || [ "$(digest_of best)" != "$(digest_of avx2)" ] || wrong "--max-isa avx2 changes no bit of $best"
  "$tessera" verify --preset gpt2-tiny --devices 2 --max-isa avx2 >"$folder/verify.log" 2>&1 || wrong "verify fails at avx2"
  "$tessera" plan --preset gpt2-tiny --vocab-size 62 --max-isa avx2 --verbose >"$folder/plan.log" 2>&1 || wrong "plan fails at avx2"
  ! grep -q 'amx:' "$folder/plan.log" || wrong "plan has tiles at avx2"
  "$tessera" sample "$folder/best" --tokens 5 --max-isa avx2 >"$folder/sample.log" 2>&1 || wrong "sample fails at avx2"

  "$tessera" $(train avx2 4 --resume auto) >"$folder/resumed.log" 2>&1 || wrong "no resumed run"
  [ "$best" = avx2 ] || grep -q "resuming with other kernels: max-isa is avx2 there and $best here" "$folder/resumed.log" \
    || wrong "a resumed run does not say that its level differs"
}

# A rank on the best machine and one on a machine of avx2 compute what two of avx2 do, whoever leads.
ranks() {
  [ "$best" != baseline ] && [ "$best" != avx2 ] || { echo "not run: this machine is no better than avx2"; exit 77; }
  root=()
  [ "$(id -u)" != 0 ] || root=(--allow-run-as-root)
  strong=(env -u TESSERA_MAX_ISA "$lesser") weak=(env TESSERA_MAX_ISA=avx2 "$lesser")
  both() { # RUN, the programs of rank 0 and 1
    local -n zero=$2 one=$3
    mpirun "${root[@]}" --oversubscribe --bind-to none -n 1 "${zero[@]}" $(train "$1" 3) : \
      -n 1 "${one[@]}" $(train "$1" 3) >"$folder/$1.log" 2>&1 \
      || wrong "ranks '$1' do not train together"
  }
  both like weak weak
  both second strong weak
  both first weak strong
  for run in like second first; do
    [ "$(isa_of $run)" = avx2 ] || wrong "ranks '$run' ran at '$(isa_of $run)'"
    [ "$(digest_of $run)" = "$(digest_of like)" ] || wrong "ranks '$run' differ from two that are alike"
  done
}

"$part"
