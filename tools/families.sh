#!/bin/bash
# families.sh [--every] [--family NAME] TESSERA FOLDER...: trains the models in folders of Hugging Face on meshes of devices,
# in f32 and 16 bits, and holds losses, gradients and parameters against one device (`tessera verify`). A mesh that does
# not divide a model's heads is passed over. Without --every the meshes are those of which each shows what no other does.
# Prints a line for each run that differs or fails, and how many there were.
set -euo pipefail
MESHES="
2 --pipeline-model-parallel-size 2 --micro-batch-size 2
2 --context-parallel-size 2 --bf16
4 --tensor-model-parallel-size 2 --zero-stage 3 --recompute-granularity full
"
EVERY="
1 --bf16
1 --fp16
2 --tensor-model-parallel-size 2 --sequence-parallel
2 --tensor-model-parallel-size 2 --sequence-parallel --bf16
2 --zero-stage 3
2 --zero-stage 1 --bf16
2 --context-parallel-size 2
2 --pipeline-model-parallel-size 2 --micro-batch-size 2 --pipeline-schedule zb-h1 --bf16
4 --pipeline-model-parallel-size 2 --tensor-model-parallel-size 2 --micro-batch-size 1
8 --pipeline-model-parallel-size 2 --tensor-model-parallel-size 2 --zero-stage 2 --micro-batch-size 1
8 --pipeline-model-parallel-size 2 --tensor-model-parallel-size 2 --context-parallel-size 2 --micro-batch-size 2 --bf16
"
meshes=$MESHES only=
while [ "${1:0:2}" = -- ]; do
  case $1 in
    --every) meshes=$MESHES$EVERY ;;
    --family) only=$2; shift ;;
    *) echo "families.sh: no such flag: $1" >&2; exit 2 ;;
  esac
  shift
done
tessera=$1
shift
runs=0 wrong=0 said=$(mktemp)
trap 'rm -f "$said"' EXIT
for folder in "$@"; do
  [ -z "$only" ] || [[ $(basename "$folder") == "$only"* ]] || continue
  context="--context 12"
  ! grep -q '"image_size"' "$folder/config.json" || context=  # pictures have as many tokens as patches
  [ ! -f "$folder/flags.txt" ] || continue  # a folder says none of these flags, and begins no model that has them
  while read -r devices mesh; do
    [ -n "$devices" ] || continue
    runs=$((runs + 1))
    # shellcheck disable=SC2086
    "$tessera" verify --init-from "$folder" $context --global-batch-size 8 --devices "$devices" $mesh >/dev/null 2>"$said" </dev/null ||
      if grep -q "does not divide the model's" "$said"; then runs=$((runs - 1)); else echo "WRONG $(basename "$folder") --devices $devices $mesh: $(head -3 "$said")"; wrong=$((wrong + 1)); fi
  done <<<"$meshes"
done
echo "$runs runs, $wrong wrong"
[ $runs -gt 0 ] && [ $wrong = 0 ]
