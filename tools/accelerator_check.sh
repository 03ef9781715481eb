#!/bin/bash
# accelerator_check.sh TESSERA [MODEL...]: compiles training steps of whole models for H100s with no GPU here, and prints
# how large their texts are, how long XLA takes, and its bytes on each device beside those of our plan. Without MODEL all
# below. Fails where a step does not compile, or takes more than the GPU has.
set -euo pipefail

GPU="NVIDIA H100 80GB HBM3"
GPU_BYTES=80000000000
LIMIT=${LIMIT:-1800}  # seconds for each

# model, devices, flags: as one would train it there, so that it fits.
MODELS="
gpt2-small   8 --tensor-model-parallel-size 2
gpt2-small 256 --zero-stage 1 --micro-batch-size 1 --global-batch-size 256
bert-large   8 --zero-stage 1
bert-large 256 --zero-stage 1
llama-7b     8 --zero-stage 3 --micro-batch-size 1 --recompute-granularity full
llama-7b   256 --zero-stage 1 --tensor-model-parallel-size 8 --micro-batch-size 1 --recompute-granularity full
llama-70b    8 --tensor-model-parallel-size 8 --micro-batch-size 1 --recompute-granularity full --offload-optimizer --offload-parameters
llama-70b  256 --zero-stage 3 --tensor-model-parallel-size 8 --micro-batch-size 1 --recompute-granularity full
"

main() {
  local tessera=$1 model devices flags bad=0
  shift
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  known "$@"
  printf '%-11s %8s %-12s %8s %10s %10s %10s   %s\n' model devices mesh "text MB" "compile s" "XLA GB" "plan GB" flags
  while read -r model devices flags; do
    [ -n "$model" ] && wanted "$model" "$@" || continue
    # shellcheck disable=SC2086
    row "$tessera" "$model" "$devices" $flags || bad=1
  done <<<"$MODELS"
  exit $bad
}

# known MODEL...: there is each of them.
known() {
  local model
  for model; do
    grep -q "^$model " <<<"$MODELS" || { echo "accelerator_check: no model $model; there are $(names)" >&2; exit 2; }
  done
}
names() { awk 'NF && !seen[$1]++ { printf "%s%s", between, $1; between = ", " }' <<<"$MODELS"; }
# wanted MODEL ASKED...: it is among them, or nothing is asked.
wanted() { [ $# = 1 ] || grep -qxF -- "$1" <(printf '%s\n' "${@:2}"); }

row() {
  local tessera=$1 model=$2 devices=$3 code=0
  shift 3
  timeout "$LIMIT" "$tessera" plan --device pjrt:cuda --gpu "$GPU" --json --bf16 --preset "$model" --devices "$devices" \
    "$@" >"$scratch/plan.json" 2>"$scratch/said" </dev/null || code=$?
  if [ $code != 0 ]; then
    printf '%-11s %8s does not compile (%s): %s   %s\n' "$model" "$devices" \
      "$([ $code = 124 ] && echo "more than $LIMIT s" || echo "status $code")" \
      "$(grep -v '^[WIE][0-9]* ' "$scratch/said" | tail -1 | cut -c1-200)" "$*"
    return 1
  fi
  local peak
  peak=$(compiled peak_bytes)
  printf '%-11s %8s %-12s %8s %10.0f %10s %10s   %s\n' "$model" "$devices" "$(field mesh)" \
    "$(part "$(compiled text_bytes)" 6)" "$(compiled seconds)" "$(part "$peak" 9)" "$(part "$(field planned_peak_bytes)" 9)" "$*"
  [ "$peak" -le "$GPU_BYTES" ] || { echo "  it takes $peak bytes, and the GPU has $GPU_BYTES"; return 1; }
}

# field NAME: its first value in the plan; compiled NAME: its value in what XLA said.
field() { sed -n "s/^ *\"$1\": \"\\{0,1\\}\\([^\",]*\\).*/\\1/p" "$scratch/plan.json" | head -1; }
compiled() { sed -n "/^  \"compiled\": {/,/}/s/^ *\"$1\": \\([^,]*\\).*/\\1/p" "$scratch/plan.json" | head -1; }
# part BYTES ZEROS: in millions or thousands of millions, two digits behind the point.
part() { awk -v n="$1" -v zeros="$2" 'BEGIN { printf "%.2f", n / 10 ^ zeros }'; }

main "$@"
