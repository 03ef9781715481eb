#!/bin/bash
# Runs the scripts as a reader would, with two ranks and a small text, and looks at all that they leave.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export TESSERA_BUILD=${1:?usage: test.sh BUILD-FOLDER}
export MASTER_PORT=${MASTER_PORT:-$((20000 + $$ % 20000))}
TESSERA=$TESSERA_BUILD/tessera PROGRAM=$TESSERA_BUILD/example_wmt_transformer
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
fail() { echo "$*"; tail -n 3 device*/train.log* 2>/dev/null || true; exit 1; }
digest() { "$TESSERA" inspect "$1" --digest; }
losses() { grep -ohE 'epoch: [0-9]+ step: [0-9]+, loss is [0-9.]+' "$1"; }

# Words, and the same words with a letter before each.
for ((i = 0; i < 120; i++)); do
  words=$(((i * 7919) % 997)) more=$(((i * 104729) % 991))
  printf 'w%d v%d\tx w%d y v%d\n' $words $more $words $more
done >pairs.txt
FLAGS=(--vocab_size=300 --d_model=32 --encoder_layer=1 --decoder_layer=2 --src_len=48 --tgt_len=48 --batch_size=8)

bash "$HERE/run_parallel_save_ckpt.sh" pairs.txt 2 --steps=8 "${FLAGS[@]}" >out.txt || fail "$(cat out.txt)"
grep -q '^training success' out.txt || fail "it does not say that it succeeded"
for i in 0 1; do
  [ "$(losses device$i/train.log$i | wc -l)" = 8 ] || fail "rank $i has not told eight losses"
  grep -q "^RANK_ID=$i" device$i/env$i.log || fail "rank $i has no environment"
  grep -q '^step time: ' device$i/train.log$i || fail "rank $i tells no times"
done
[ "$(losses device0/train.log0)" = "$(losses device1/train.log1)" ] || fail "ranks tell different losses"
[ "$(ls -d test/checkpoints/step-* | wc -l)" = 4 ] || fail "not the last four checkpoints: $(ls test/checkpoints)"
[ "$(ls test/checkpoints/step-00000008/data-*.safetensors | wc -l)" = 2 ] || fail "not a file of each rank"
first=$(losses device0/train.log0 | head -1 | grep -oE '[0-9.]+$')
awk -v l="$first" 'BEGIN { d = l - log(300); exit !(d < 0.02 && d > -0.02) }' || fail "the first loss is $first, not ln 300"
whole=$(digest test) losses_of_two=$(losses device0/train.log0)

# Killed in the middle, and recovered: the same bits. (Ranks are killed as a machine that loses its power kills them.)
rm -rf test device?
bash "$HERE/run_parallel_save_ckpt.sh" pairs.txt 2 --steps=8 "${FLAGS[@]}" >out.txt 2>&1 &
script=$!
for ((i = 0; i < 600; i++)); do
  [ -d test/checkpoints/step-00000003 ] && break
  sleep 0.05
done
pkill -KILL -f -- "--file_path=$T/pairs.txt" || fail "nothing runs that could be killed"
wait "$script" || true
bash "$HERE/run_parallel_recover_ckpt.sh" pairs.txt 2 --steps=8 "${FLAGS[@]}" >out.txt || fail "$(cat out.txt)"
[ "$(digest test)" = "$whole" ] || fail "the recovered run has other bits"

# On threads, and cut otherwise: the same losses, to the four digits that are printed.
"$PROGRAM" --file_path pairs.txt --devices 2 --mp 2 --steps 8 --checkpoint threads "${FLAGS[@]}" >threads.log || fail "$(cat threads.log)"
[ "$(digest threads)" = "$whole" ] || fail "threads have other bits"
"$PROGRAM" --file_path pairs.txt --steps 8 --checkpoint one "${FLAGS[@]}" >one.log || fail "$(cat one.log)"
[ "$(losses one.log)" = "$losses_of_two" ] || fail "one device has other losses"
"$PROGRAM" --file_path pairs.txt --devices 4 --pipeline_stage 2 --micro_batch_num 4 --optimizer_shard --recompute \
  --vocab_emb_dp=false --steps 8 --checkpoint stages "${FLAGS[@]}" >stages.log || fail "$(cat stages.log)"
[ "$(losses stages.log)" = "$losses_of_two" ] || fail "stages have other losses"

# What does not fit is refused, with what would.
if "$PROGRAM" --file_path pairs.txt --devices 2 --mp 4 --checkpoint no "${FLAGS[@]}" >no.log 2>&1; then fail "4 of 2 devices"; fi
grep -q 'start 4 devices' no.log || fail "$(cat no.log)"

# It translates a file, a line each.
cut -f1 pairs.txt | head -5 >sources.txt
"$PROGRAM" --train=false --file_path sources.txt --translations targets.txt >translate.log || fail "$(cat translate.log)"
[ "$(wc -l <targets.txt)" = 5 ] || fail "not five translations"
