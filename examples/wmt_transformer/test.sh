#!/bin/bash
# Runs the scripts as a reader would, with two ranks and a small text, and looks at all that they leave.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
TESSERA_BUILD=$(realpath "${1:?usage: test.sh BUILD-FOLDER}")
export TESSERA_BUILD
TESSERA=$TESSERA_BUILD/tessera PROGRAM=$TESSERA_BUILD/example_wmt_transformer
bash "$HERE/scripts_test.sh"
T=$(mktemp -d) script=
trap '[ -z "$script" ] || kill -KILL -- "-$script" 2>/dev/null || true; rm -rf "$T"' EXIT
cd "$T"
fail() { { echo "$*"; tail -n 3 out.txt ./*.log device*/train.log* || true; } >&2; exit 1; }
digest() {
  local bits
  bits=$("$TESSERA" inspect "$1" --digest) || fail "$1 has no digest"
  [[ $bits =~ ^[0-9a-f]{32}$ ]] || fail "the digest of $1 is '$bits'"
  echo "$bits"
}
# same_bits FOLDER WHO: the run there ended as the first one.
same_bits() {
  local bits
  bits=$(digest "$1")
  [ "$bits" = "$whole" ] || fail "$2 has other bits: $bits, not $whole"
}
losses() { grep -ohE 'epoch: [0-9]+ step: [0-9]+, loss is [0-9.]+' "$1"; }
# run SCRIPT FLAG...: on two ranks, at a port of its own.
run() {
  take_port
  bash "$HERE/$1.sh" pairs.txt 2 "${FLAGS[@]}" "${@:2}" >out.txt
}
# start SCRIPT FLAG...: the same in a group of its own, as in a terminal, as $script.
start() {
  take_port
  set -m
  bash "$HERE/$1.sh" pairs.txt 2 "${FLAGS[@]}" "${@:2}" >out.txt 2>&1 &
  script=$!
  set +m
}
take_port() {
  MASTER_PORT=$("$TESSERA_BUILD/start_ranks" --port) || fail "there is no free port"
  export MASTER_PORT
}
# await WORDS...: until the command succeeds, for a minute.
await() {
  local i
  for ((i = 0; i < 1200; i++)); do
    ! "$@" || return 0
    sleep 0.05
  done
  fail "in a minute there is no: $*"
}

# Words, and the same words with a letter before each.
for ((i = 0; i < 120; i++)); do
  words=$(((i * 7919) % 997)) more=$(((i * 104729) % 991))
  printf 'w%d v%d\tx w%d y v%d\n' $words $more $words $more
done >pairs.txt
FLAGS=(--vocab_size=300 --d_model=32 --encoder_layer=1 --decoder_layer=2 --src_len=48 --tgt_len=48 --batch_size=8)

run run_parallel_save_ckpt --steps=8 || fail "the first run fails"
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
awk -v l="$first" 'BEGIN { d = l - log(300); exit !(d < 0.02 && d > -0.02) }' ||
  fail "the first loss is $first, not ln 300"
whole=$(digest test)
losses_of_two=$(losses device0/train.log0)

# A second run in the same folder is refused, by a flag of this program.
code=0
run run --steps=8 || code=$?
[ $code = 2 ] && grep -qF "go on with it by --recover=true, or give another folder" out.txt ||
  fail "a second run in the folder of one ends with $code"

# Killed in the middle, all at once, and recovered: the same bits. What was saved behind the eighth step is not read.
rm -rf test device?
start run_parallel_save_ckpt --steps=100000 --keep_checkpoint_max=0
await test -d test/checkpoints/step-00000003
kill -KILL -- "-$script"
wait "$script" 2>/dev/null || true
script=
for step in test/checkpoints/step-*; do [[ ${step##*-} < 00000007 ]] || rm -rf "$step"; done
run run_parallel_recover_ckpt --steps=8 || fail "the recovered run fails"
[ "$(losses device0/train.log0 | wc -l)" -lt 8 ] || fail "the recovered run begins anew"
same_bits test "the recovered run"

# Ctrl-C, which reaches the script and all its ranks: they save and stop, and the script waits for them.
rm -rf test device?
start run --steps=100000 --save_checkpoint_steps=0
await grep -qs 'step: 2,' device1/train.log1
kill -INT -- "-$script"
code=0
wait "$script" || code=$?
[ $code = 75 ] || fail "after Ctrl-C the script ends with $code"
for ((i = 0; i < 50; i++)); do kill -0 -- "-$script" 2>/dev/null || break; sleep 0.1; done
[ $i -lt 50 ] || fail "after Ctrl-C a process is left"
script=
grep -q '^training stopped, as asked' out.txt || fail "it does not say that it was stopped"
[ "$(ls -d test/checkpoints/step-* | wc -l)" = 1 ] || fail "after Ctrl-C nothing is saved"
digest test >/dev/null

# On threads, and cut otherwise: the same losses, to the four digits that are printed.
alone() {  # FOLDER FLAG...
  "$PROGRAM" --file_path pairs.txt --steps 8 --checkpoint "$1" "${FLAGS[@]}" "${@:2}" >"$1.log" ||
    fail "the run $1 fails"
}
alone threads --devices 2 --mp 2
same_bits threads "the run on threads"
alone one
[ "$(losses one.log)" = "$losses_of_two" ] || fail "one device has other losses"
alone stages --devices 4 --pipeline_stage 2 --micro_batch_num 4 --optimizer_shard --recompute --vocab_emb_dp=false
[ "$(losses stages.log)" = "$losses_of_two" ] || fail "stages have other losses"
# As many as the cluster of the tutorial has, with the --mp that its script gives them.
alone sixteen --devices 16 --mp 8 --steps 2
[ "$(losses sixteen.log)" = "$(head -2 <<<"$losses_of_two")" ] || fail "sixteen devices have other losses"

# What does not fit is refused, with what would.
refused() {  # WORDS FLAG...
  local code=0
  "$PROGRAM" --file_path pairs.txt --checkpoint no "${FLAGS[@]}" "${@:2}" >no.log 2>&1 || code=$?
  [ $code = 2 ] && grep -qF -- "$1" no.log || fail "${*:2} ends with $code: $(head -3 no.log)"
  [ ! -e no ] || fail "${*:2} leaves a folder"
}
refused 'start 4 devices' --devices 2 --mp 4
for flag in mp pipeline_stage micro_batch_num batch_size src_len tgt_len d_model encoder_layer decoder_layer \
  vocab_size devices epochs; do
  refused "--$flag is 0; it must be at least 1" --$flag 0
done
for flag in dp steps eval_steps bleu_texts save_checkpoint_steps keep_checkpoint_max; do
  refused "--$flag is -1; it must be at least 0" --$flag -1
done
refused 'parts' --mp 4611686018427387904 --pipeline_stage 4 --micro_batch_num 4
refused "--mp is '99999999999999999999'; numbers of that size do not fit" --mp 99999999999999999999
refused "--mp is '2x'; it must be a whole number" --mp=2x
refused "--lr is ''; it must be a number" --lr=
refused "--train is 'no'; it must be true or false" --train=no
refused '--translations is of --train=false' --translations out
refused '--file_path is missing' --file_path=
refused '--checkpoint is empty' --checkpoint=
refused "unexpected 'pairs.txt'" pairs.txt
refused 'nothing says which rank this process is' --distribute
RANK_TABLE_FILE=/nothing RANK_ID=0 refused "cannot read '/nothing'" --distribute
alone nothing_held_out --held_out 0 --steps 1

# It translates a file, a line each.
cut -f1 pairs.txt | head -5 >sources.txt
translate() { "$PROGRAM" --train=false --file_path sources.txt --checkpoint one "$@" >translate.log 2>&1; }
translate --translations targets.txt || fail "$(cat translate.log)"
[ "$(wc -l <targets.txt)" = 5 ] || fail "not five translations"
! translate --translations targets.txt || fail "it replaces a file"
grep -qF -- "--translations 'targets.txt' exists; give another" translate.log || fail "$(cat translate.log)"
! translate --checkpoint none || fail "it translates without a model"
grep -q "no checkpoint 'none'" translate.log || fail "$(cat translate.log)"
