#!/bin/bash
# kill_campaign.sh TESSERA [KILLS [HOW]]: kills runs by SIGKILL at random moments, half of the time while they come up, else
# among their steps and saves, and resumes them, until KILLS (default 8) kills were seen; then the run at hand goes on to its
# end. Each run must end in the state, and with the losses and the best checkpoint, of the undisturbed one; no resume may be
# refused, and no committed checkpoint damaged.
# One kill is not left to chance, the first: it comes while a save is under way, after another one.
#
# HOW: alone, one device; threads, two devices that share the optimizer; processes, the same under `tessera launch`: a rank
# is killed, any, or mpirun, or the launch itself. Unless it was the launch that was killed, it must say so in one message.
set -euo pipefail
tessera=$1 wanted=${2:-8} how=${3:-alone}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
RANDOM=${SEED:-$$}

for i in $(seq 1 700); do echo "line $((i * 7919 % 1000))"; done >"$work/text.txt"
# Most of the time of such a run goes by while a save is under way. A growing learning rate lets losses fall, then rise:
# the best is none of the newest.
train=(train --preset llama-tiny --layers 1 --dropout 0.1 --data "$work/text.txt" --steps 60
  --save-every 2 --keep-last 2 --keep-best --eval-every 5 --lr 3 --lr-warmup-steps 60 --lr-decay-style constant
  --threads 1 --resume auto)
case $how in
  alone) train=("$tessera" "${train[@]}") ;;
  threads) train=("$tessera" "${train[@]}" --devices 2 --zero-1-memory-optimization) ;;
  processes) train=("$tessera" launch -n 2 -- "${train[@]}" --zero-1-memory-optimization) ;;
  *) echo "kill_campaign: HOW is '$how'; it is one of alone, threads, processes" >&2; exit 2 ;;
esac
fail() {
  echo "kill_campaign: $*; the last words of the run were:" >&2
  tail -5 "$work/log" >&2
  exit 1
}
digest() { "$tessera" inspect "$1" --digest; }
losses() { sed 's/,"tokens_per_s".*//' "$1/metrics.jsonl"; }
count() { grep -c "$1" "$2" || true; }
now() { date +%s%3N; }

# choose: the process to kill in $victim, and what it is in $kind. Ranks are mpirun's children, and so grandchildren of the
# launch; while they come up there may be none.
choose() {
  local mpirun ranks=()
  victim=$run kind=run
  [ $how = processes ] || return 0
  kind=launch
  [ $((RANDOM % 8)) != 0 ] || return 0
  mpirun=$(pgrep -P $run | tail -1) || return 0
  victim=$mpirun kind=mpirun
  [ $((RANDOM % 4)) != 0 ] || return 0
  ranks=($(pgrep -P "$mpirun")) || return 0
  victim=${ranks[RANDOM % ${#ranks[@]}]} kind=rank
}

# best: the checkpoint that is linked as the best. It must have the lowest loss of all validations.
best() {
  local link lowest
  link=$(readlink "$1/checkpoints/best") || fail "$1 has no best checkpoint"
  lowest=$(sed -nE 's/.*"kind":"valid","step":([0-9]+),"loss":([0-9.e+-]+).*/\2 \1/p' "$1/metrics.jsonl" | LC_ALL=C sort -g |
    head -1)
  [ "$link" = "step-$(printf %08d "${lowest#* }")" ] || fail "$1 links $link as the best, but the lowest loss is $lowest"
  echo "$link"
}

# rank_0: the process that commits saves, of a launch.
rank_0() {
  local mpirun rank
  mpirun=$(pgrep -P $run | tail -1) || return 1
  for rank in $(pgrep -P "$mpirun"); do
    ! tr '\0' '\n' 2>/dev/null <"/proc/$rank/environ" | grep -qx OMPI_COMM_WORLD_RANK=0 || { echo "$rank" && return; }
  done
  return 1
}

# catch_a_save: waits until the run at hand saves, with a checkpoint behind it, and kills the process that commits, so that
# the save cannot end. It is stopped to be looked at. A run that ends before it was caught is followed by another one.
catch_a_save() {
  local saver=
  while kill -0 $run 2>/dev/null; do
    sleep 0.005
    compgen -G "$out/checkpoints/step-*" >/dev/null || continue
    case $how,$saver in
      processes,) saver=$(rank_0) || continue ;;
      *,) saver=$run ;;
    esac
    victim=$saver kind=run
    [ $how != processes ] || kind=rank
    kill -STOP "$saver" 2>/dev/null || continue
    until grep -qs '^State:.[TZX]' "/proc/$saver/status" || [ ! -e "/proc/$saver" ]; do sleep 0.001; done
    if compgen -G "$out/checkpoints/.tmp-step-*" >/dev/null; then
      kill -KILL "$saver" 2>/dev/null || true
      return 0
    fi
    kill -CONT "$saver" 2>/dev/null || true
  done
}

# A launch that is killed leaves its ranks to mpirun, which ends them.
await_orphans() {
  for ((i = 0; i < 100; ++i)); do
    pgrep -f "^$tessera train .*$work" >/dev/null || return 0
    sleep 0.1
  done
  fail "ranks outlive their launch by 10 s"
}

# reported: what the launch must have said of the kill, and its code.
reported() {
  [ "$(count '^error: ' "$work/log")" = 1 ] || fail "a killed $kind is reported $(count '^error: ' "$work/log") times"
  # Of mpirun the first call asks for its version. Open MPI 4.1 may wait for ever for a rank that was killed while it came
  # up; then the launch ends it.
  [ $rc = 137 ] || { [ $kind = mpirun ] && [ $rc = 5 ]; } || fail "a killed $kind gives the code $rc"
}

# await_step: until the run at hand has told of a step, or has ended.
await_step() {
  until grep -q '^step ' "$work/log" || ! kill -0 $run 2>/dev/null; do sleep 0.01; done
}

# pause MS: a random time below MS milliseconds.
pause() {
  local ms=$((RANDOM % $1))
  sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
}

begin=$(now)
"${train[@]}" --output "$work/whole" >"$work/log" 2>&1 &
run=$!
await_step
first=$(now)
wait $run || fail "the undisturbed run fails"
start_ms=$((first - begin + 1)) steps_ms=$(($(now) - first + 1))
expected=$(digest "$work/whole")
expected_best=$(best "$work/whole")
[ -n "$expected_best" ] && [ "$expected_best" \< step-00000056 ] ||
  fail "the best is '$expected_best', one of the newest: this shows nothing"

kills=0 early=0 runs=0 while_saving=0 resumed=0 leftovers=0
declare -A by_kind=()
while [ "$kills" -lt "$wanted" ]; do
  out=$work/run-$runs left_before=
  while true; do
    "${train[@]}" --output "$out" >"$work/log" 2>&1 &
    run=$!
    if [ "$while_saving" = 0 ]; then
      catch_a_save
    elif [ "$kills" -lt "$wanted" ]; then
      # The first resume after that kill says what it found before it may be killed.
      until [ "$leftovers" -gt 0 ] || grep -q '^resuming after' "$work/log" || ! kill -0 $run 2>/dev/null; do sleep 0.01; done
      # While it comes up, or among its steps and saves.
      if [ $((RANDOM % 2)) = 0 ]; then
        pause $start_ms
      else
        await_step
        pause $steps_ms
      fi
      choose
      kill -KILL "$victim" 2>/dev/null || true
    fi
    rc=0
    wait $run 2>/dev/null || rc=$?
    ! grep -q "is skipped: " "$work/log" || fail "a committed checkpoint was damaged"
    [ "$(count '^resuming after' "$work/log")" = 0 ] || resumed=$((resumed + 1))
    [ "$(count 'is an unfinished checkpoint' "$work/log")" = 0 ] || leftovers=$((leftovers + 1))
    [ $rc != 0 ] || break
    case $kind in
      rank | mpirun) reported ;;
      launch) await_orphans ;;
    esac
    [ $rc = 137 ] || [ $kind = mpirun ] || [ $kind = rank ] || fail "after $kills kills a resume ends with $rc"
    kills=$((kills + 1)) by_kind[$kind]=$((${by_kind[$kind]:-0} + 1))
    grep -q '^step ' "$work/log" || early=$((early + 1))
    left=$(compgen -G "$out/checkpoints/.tmp-step-*" || true)
    [ -z "$left" ] || [ "$left" = "$left_before" ] || while_saving=$((while_saving + 1))
    left_before=$left
  done
  runs=$((runs + 1))
  [ "$while_saving" -gt 0 ] || [ $runs -lt 20 ] || fail "$runs runs were not caught in a save"
  [ "$(digest "$out")" = "$expected" ] || fail "run $runs ends in another state"
  "$tessera" inspect "$out" --verify >/dev/null || fail "run $runs leaves a damaged checkpoint"
  [ "$(losses "$out")" = "$(losses "$work/whole")" ] || fail "run $runs has other losses"
  found=$(best "$out")
  [ "$found" = "$expected_best" ] || fail "run $runs has the best checkpoint $found, not $expected_best"
  # What is left over goes with the next save; a run that was killed behind its last one has none.
  grep -q "^nothing to do" "$work/log" || ! compgen -G "$out/checkpoints/.*-*" >/dev/null ||
    fail "run $runs leaves $(ls -A "$out/checkpoints")"
  ! compgen -G "$out/*.partial-*" >/dev/null || fail "run $runs leaves unfinished files: $(ls "$out")"
  rm -rf "$out"
done
[ "$while_saving" -gt 0 ] || fail "no kill came during a save"
[ "$resumed" -gt 0 ] || fail "no resume went on from a checkpoint"
[ "$leftovers" -gt 0 ] || fail "no resume passed over an unfinished save"
of=
for kind in "${!by_kind[@]}"; do of="$of ${by_kind[$kind]} of a $kind,"; done
echo "$how: $kills kills over $runs runs,$of $early before a step, $while_saving left an unfinished save," \
  "$resumed resumes went on from a checkpoint, $leftovers of them passed over an unfinished save; 0 refused; $runs of $runs digests equal, $expected, and best checkpoints, $expected_best"
