#!/bin/bash
# accelerator_runs.sh [--plugin NAME] [--family NAME] [--mesh TEXT] [TESSERA]: runs tiny models of all families on the
# devices of a plugin (cpu, unless --plugin names another), with dropout, on 1, 2, 3, 4 and 8 devices, in every mesh and
# pipeline schedule below. Each run is held against one device of processors:
#
#   losses   10 steps of `tessera verify`: loss within 1e-5, gradients and parameters within 2e-4, twice what verify allows:
#            a plugin's functions round otherwise, and steps make more of it (on processors up to 6e-5 here)
#   resume   a checkpoint of processors goes on, and one of the plugin's devices goes on on processors
#   texts    what a model writes, word by word
#
# --family and --mesh choose of them; the mesh `resume` stands for all but the first. Prints a line each, and the worst of each family; fails where one is wrong.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

FAMILIES="
gpt2        --preset gpt2-tiny --vocab-size 40
llama       --preset llama-tiny --vocab-size 40
bert        --preset bert-tiny --vocab-size 40
transformer --preset transformer-tiny --vocab-size 40
t5          --family t5 --heads 4 --width 64 --ffn-width 96 --context 16 --source-context 12 --vocab-size 40
vit         --family vit --heads 4 --width 64 --ffn-width 96 --image-size 16 --patch-size 4 --classes 5
"
# Devices, layers, and how they are used: a stage needs layers for each of its chunks.
MESHES="
1 --layers 2 --micro-batch-size 8
1 --layers 2 --micro-batch-size 2 --recompute-granularity full
2 --layers 2 --zero-stage 0
2 --layers 2 --zero-stage 1 --optimizer lamb
2 --layers 2 --zero-stage 3 --micro-batch-size 2
2 --layers 2 --tensor-model-parallel-size 2 --sequence-parallel
2 --layers 2 --context-parallel-size 2
2 --layers 2 --pipeline-model-parallel-size 2 --micro-batch-size 2 --pipeline-schedule gpipe
2 --layers 2 --pipeline-model-parallel-size 2 --micro-batch-size 2 --pipeline-schedule 1f1b
2 --layers 4 --pipeline-model-parallel-size 2 --micro-batch-size 2 --pipeline-schedule interleaved
2 --layers 2 --pipeline-model-parallel-size 2 --micro-batch-size 2 --pipeline-schedule zb-h1
2 --layers 4 --pipeline-model-parallel-size 2 --micro-batch-size 2 --pipeline-schedule zb-v
3 --layers 2 --global-batch-size 7 --zero-stage 2
3 --layers 2 --global-batch-size 9 --zero-stage 3 --micro-batch-size 1
4 --layers 2 --tensor-model-parallel-size 2 --sequence-parallel --zero-stage 3
4 --layers 2 --tensor-model-parallel-size 4
4 --layers 2 --context-parallel-size 2 --zero-stage 1
4 --layers 2 --pipeline-model-parallel-size 2 --tensor-model-parallel-size 2 --micro-batch-size 2
4 --layers 4 --pipeline-model-parallel-size 4 --micro-batch-size 1 --pipeline-schedule 1f1b
4 --layers 2 --pipeline-model-parallel-size 2 --zero-stage 2 --micro-batch-size 2 --pipeline-schedule zb-h1
8 --layers 2 --tensor-model-parallel-size 2 --context-parallel-size 2 --zero-stage 3
8 --layers 4 --pipeline-model-parallel-size 2 --tensor-model-parallel-size 2 --micro-batch-size 2 --pipeline-schedule interleaved
8 --layers 2 --zero-stage 3
"

stop() { printf 'accelerator-runs: %s\n' "$*" >&2; exit 2; }
plugin=cpu only_family="" only_mesh="" tessera=build/tessera
while [ $# -gt 0 ]; do
  case $1 in
    --plugin) plugin=${2-}; shift 2 ;;
    --family) only_family=${2-}; shift 2 ;;
    --mesh) only_mesh=${2-}; shift 2 ;;
    -*) stop "unknown flag $1; usage: ./dev accelerator-runs [--plugin NAME] [--family NAME] [--mesh TEXT]" ;;
    *) tessera=$1; shift ;;
  esac
done
[ -x "$tessera" ] || stop "$tessera is not there; ./dev build makes it"
[ -z "$only_family" ] || grep -q "^$only_family " <<<"$FAMILIES" || stop "no family $only_family in the list of this script"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 count=0 refused=0
for ((i = 0; i < 300; ++i)); do echo "line $i of a text to train on, of $((i * 7919 % 1000)) words"; done >"$work/text.txt"
for ((i = 0; i < 300; ++i)); do printf 'line %d of it\t%d words it has\n' $i $((i * 7919 % 1000)); done >"$work/pairs.tsv"

# told WORST RESULT WHAT: a line of the table.
told() { printf '%-9s %-8s %s\n' "$1" "$2" "$3"; }
wrong() { failed=$((failed + 1)); told "${2:--}" WRONG "$1"; tail -3 "$work/err" >&2 || true; }

# What verify refuses is within 2e-4, and a number.
are_close() {
  awk '/"relative_error"/ { error = $2 } /"ok": false/ && error != "" && !(error + 0 > 1e-4 && error + 0 <= 2e-4) { bad = 1 }
    END { exit bad }' error=
}
# verified FAMILY FLAGS MESH: the loss's error, and the largest of any tensor. What a family cannot do is no error.
verified() {
  local code=0 loss all
  # shellcheck disable=SC2086
  "$tessera" verify --device "pjrt:$plugin" --threads 1 --dropout 0.1 --steps 10 --json $2 --devices $3 >"$work/out" \
    2>"$work/err" || code=$?
  count=$((count + 1))
  loss=$(awk '/"name": "loss"/ { found = 1 } found && /"relative_error"/ { print $2 + 0; exit }' "$work/out")
  all=$(awk '/"max_relative_error"/ { print $2 + 0; exit }' "$work/out")
  if [ $code = 2 ]; then
    refused=$((refused + 1))
    told - refused "$1 $3: $(grep -m1 . "$work/err" | cut -c1-160)"
  elif [[ $code != [06] || -z $loss ]] || ! awk "BEGIN { exit !($loss <= 1e-5) }" || ! are_close <"$work/out"; then
    wrong "$1 $3 (code $code, worst tensor $all)" "$loss"
  else
    told "$loss" right "$1 $3 (worst tensor $all)"
    here=$((here + 1))
    worst=$(awk "BEGIN { print ($loss > $worst) ? $loss : $worst }")
  fi
}

losses() { sed -n 's/^{"kind":"train","step":\([0-9]*\),"loss":\([^,]*\),.*/\1 \2/p' "$1"; }
# train NAME FLAG...
train() {
  local name=$1
  shift
  "$tessera" train "${base[@]}" --dropout 0.1 --threads 1 --output "$work/$name" --resume auto "$@" >"$work/out" 2>"$work/err" ||
    wrong "train $name $*"
}
# goes_on NAME WHAT: the losses of a run that went on are those of one that did not.
goes_on() {
  local far
  count=$((count + 1))
  far=$(paste <(losses "$work/whole/metrics.jsonl") <(losses "$work/$1/metrics.jsonl") |
    awk '{ d = ($2 - $4) / $2; d = d < 0 ? -d : d; if (d > worst) worst = d; n += ($1 == $3) } END { print n == 10 ? worst + 0 : 1 }')
  if awk "BEGIN { exit !($far <= 1e-5) }"; then told "$far" right "$2"; else wrong "$2" "$far"; fi
}

# resumed FAMILY FLAGS: there and back, between meshes; and what it writes.
resumed() {
  local data=$work/text.txt device
  [ "$1" != transformer ] || data=$work/pairs.tsv
  # shellcheck disable=SC2206
  base=(${2/ --vocab-size 40/} --layers 2 --data "$data")
  rm -rf "$work"/{whole,there,back}
  train whole --steps 10
  train there --steps 5 --device "pjrt:$plugin" --devices 4 --tensor-model-parallel-size 2 --zero-stage 3
  train there --steps 10
  goes_on there "$1: 5 steps on 4 devices of the plugin, 5 on one of processors"
  train back --steps 5 --devices 2 --zero-stage 1
  train back --steps 10 --device "pjrt:$plugin" --devices 2 --tensor-model-parallel-size 2
  goes_on back "$1: 5 steps on 2 devices of processors, 5 on 2 of the plugin"
  [ "$1" != bert ] || return 0
  for device in cpu "pjrt:$plugin"; do
    "$tessera" sample "$work/whole" --prompt "line 3 of" --temperature 0 --max-new-tokens 12 --device "$device" \
      >"$work/said.$device" 2>"$work/err" || wrong "$1: sample --device $device"
  done
  count=$((count + 1))
  if cmp -s "$work/said.cpu" "$work/said.pjrt:$plugin"; then told 0 right "$1: texts"; else wrong "$1: texts"; fi
}

printf '%-9s %-8s %s\n' error result run
table=""
while read -r family flags; do
  [ -n "$family" ] && [[ -z $only_family || $only_family = "$family" ]] || continue
  worst=0 here=0
  while read -r mesh; do
    [ -n "$mesh" ] && [[ $mesh == *"$only_mesh"* ]] || continue
    verified "$family" "$flags" "$mesh"
  done <<<"$MESHES"
  [ $here -gt 0 ] || [ "$only_mesh" = resume ] || wrong "$family: nothing of it ran"
  # t5 needs a tokenizer of its own, vit pictures: the tests of the command train them.
  if [[ $only_mesh =~ ^(resume)?$ ]] && [[ $family =~ ^(gpt2|llama|bert|transformer)$ ]]; then resumed "$family" "$flags"; fi
  table+=$(printf '%-12s %s' "$family" "$worst")$'\n'
done <<<"$FAMILIES"
printf '\nworst loss of each family on pjrt:%s, relative:\n%s%d runs, of which %d refused; %d wrong\n' "$plugin" "$table" $count $refused $failed
[ $failed = 0 ]
