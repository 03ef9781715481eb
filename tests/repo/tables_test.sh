#!/bin/bash
# tables_test.sh TABLES: bench/tables.sh hands a table's flags and the caller's to `tessera bench`, whose place a script
# takes here, and loses no results.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wrong() { echo "WRONG: $*"; exit 1; }
mkdir -p "$work/bench" "$work/build" "$work/bin"
printf '#!/bin/sh\necho 2026-01-01\n' >"$work/bin/date"  # files have the day in their names
chmod +x "$work/bin/date"
PATH=$work/bin:$PATH
cp "$1" "$work/bench/tables.sh"
cat >"$work/build/tessera" <<'END'
#!/bin/bash
printf '%s\n' "$@"
while [ $# -gt 0 ]; do
  case $1 in --results) printf %s "$SAYS" >"$2" ;; --html) echo page >"$2" ;; esac
  shift
done
exit "$CODE"
END
chmod +x "$work/build/tessera"
run() { bash "$work/bench/tables.sh" "$@" >"$work/out" 2>"$work/err"; }
result() { cat "$work"/bench/results/*-"$1"; }
export SAYS=first CODE=0

run bert-step --turns 5 --steps=7 || wrong "a table fails: $(cat "$work/err")"
[ "$(grep -c -- '^--steps' "$work/out")" = 1 ] || wrong "--steps=7 does not take the place of the table's --steps"
grep -qx -- --turns "$work/out" || wrong "a flag is not handed on"
[ "$(result bert-step.json)" = first ] || wrong "no results"

SAYS=second CODE=1 run bert-step && wrong "a failure is hidden"
[ "$(result bert-step.json)" = second ] || wrong "what was measured before a failure is lost"
SAYS="" CODE=1 run bert-step && wrong "a failure is hidden"
[ "$(result bert-step.json)" = second ] || wrong "a failure without results takes those that are there"
result bert-step.txt | grep -qx -- --steps || wrong "a failure without results takes the table that is there"

run gpt2-step --threads 1 --beside "mine=program --steps 2" || wrong "a table fails: $(cat "$work/err")"
grep -q 'products alone, f32, 1 threads=.*--threads 1 ' "$work/out" || wrong "products are not on the caller's threads"
[ "$(grep -cx -- --steps "$work/out")" = 1 ] || wrong "words inside a value are taken for flags"

SAYS=four run accelerator --device pjrt:cuda || wrong "a table fails: $(cat "$work/err")"
[ "$(cat "$work"/bench/results/*-accelerator-{tiny,small}-{1,2}.json)" = fourfourfourfour ] || wrong "one of four results is lost"
[ "$(grep -cx pjrt:cuda "$work/out") $(grep -cx pjrt:cpu "$work/out")" = "4 0" ] || wrong "--device does not take the place of the table's"

# Of GPUs: refused where something is missing; two models on one and on all, and losses; named by the GPU.
run_gpu() { rm -f "$work"/bench/results/*; run "$@"; }
for lists in "exit 9" "echo 'GPU 0: NVIDIA H100'"; do
  printf '#!/bin/sh\n%s\n' "$lists" >"$work/bin/nvidia-smi"
  chmod +x "$work/bin/nvidia-smi"
  code=0
  run_gpu gpu || code=$?
  [ "$code $(wc -l <"$work/err")" = "2 1" ] || wrong "table gpu without what it needs: $code, $(cat "$work/err")"
  grep -q 'lacks .*plugin (./dev accelerator cuda13 --runtime).*tessera doctor' "$work/err" || wrong "$(cat "$work/err")"
  [ ! -s "$work/out" ] || wrong "table gpu begins without a GPU"
done
mkdir -p "$work/build/plugins/cuda13/nvidia"
smi() { printf '#!/bin/sh\ncase $1 in -L) printf "%s" ;; *) echo "%s" ;; esac\n' "$1" "$2" >"$work/bin/nvidia-smi"; }
smi 'GPU 0: a\nGPU 1: a\n' 'NVIDIA H100 80GB HBM3'
run gpu --ready || wrong "table gpu is not ready with all that it needs: $(cat "$work/err")"
[ ! -s "$work/out" ] || wrong "--ready measures"
SAYS=five run_gpu gpu --turns 2 || wrong "a table fails: $(cat "$work/err")"
for part in gpt2-1 gpt2-2 1.3b-1 1.3b-2 losses; do
  [ "$(cat "$work/bench/results/2026-01-01-nvidia-h100-80gb-hbm3-gpu-$part.json")" = five ] || wrong "no result of $part"
done
[ "$(grep -cx pjrt:cuda "$work/out") $(grep -cx h100-256 "$work/out")" = "5 4" ] || wrong "$(cat "$work/out")"
[ "$(grep -cx -- --turns "$work/out")" = 5 ] || wrong "--turns does not take the place of the table's"
smi 'GPU 0: a\n' 'NVIDIA H100 PCIe'
SAYS=three run_gpu gpu || wrong "a table fails: $(cat "$work/err")"
[ "$(ls "$work/bench/results" | grep -c json)" = 3 ] || wrong "one GPU is measured as several"
if grep -q -- --peak-of "$work/out"; then wrong "MFU of a GPU whose peak is not known"; fi
grep -q "the peak of 'NVIDIA H100 PCIe' is not known.*--peak-of" "$work/err" || wrong "nothing is said of MFU"
SAYS=cpu run_gpu gpu-gpt2-2 --device pjrt:cpu --layers 2 || wrong "a table fails: $(cat "$work/err")"
result gpu-gpt2-2.json | grep -qx cpu || wrong "another plugin cannot be measured"

# A table that waits for a processor.
echo 'flags : amx_bf16' >"$work/with" && echo 'flags : avx2' >"$work/without"
SAYS=both CPUINFO=$work/with run f32-products --turns 2 || wrong "a table fails: $(cat "$work/err")"
grep -qx bert-base-pretrain "$work/out" && grep -qx gpt2-small "$work/out" || wrong "one of two models is left out"
[ "$(result f32-products-bert.json)$(result f32-products-gpt2.json)" = bothboth ] || wrong "one of two results is lost"
if CPUINFO=$work/without run f32-products; then wrong "a table without its processor is accepted"; fi
grep -q 'waits for a processor with AMX' "$work/err" || wrong "a table does not say what it waits for"

for words in nonsense "bert-step --preset gpt2-tiny" ""; do
  # shellcheck disable=SC2086
  if run $words; then wrong "'$words' is accepted"; fi
  [ -s "$work/err" ] || wrong "'$words' is refused without a word"
done
run bert-step --help || wrong "--help fails"
grep -q '^Tables:' "$work/out" || wrong "--help does not list the tables"
