#!/bin/bash
# start_test.sh TESSERA START_RANKS [mpi]: every way to start a run gives the same bits, and failures over TCP are told.
# With "mpi", mpirun is one of the ways.
set -euo pipefail
tessera=$(realpath "$1") start_ranks=$(realpath "$2")
folder=$(mktemp -d)
trap 'kill -KILL $(jobs -p) 2>/dev/null || true; rm -rf "$folder"' EXIT
wrong() { printf 'start_test: %s\n' "$*" >&2; tail -n 5 "$folder"/*.log >&2 || true; exit 1; }
# digest RUN: in $digest
digest() {
  digest=$("$tessera" inspect "$folder/$1" --digest) && [ ${#digest} = 32 ] || wrong "$1 has the digest '$digest'"
}
port() { "$start_ranks" --port; }

for ((i = 0; i < 200; ++i)); do echo "line $i of a text to train on, which is read again and again"; done >"$folder/sample.txt"
train=(train --preset gpt2-tiny --layers 1 --width 32 --context 32 --steps 3 --global-batch-size 8 --data "$folder/sample.txt"
  --tensor-model-parallel-size 2 --zero-1-memory-optimization --threads 1 --distributed-timeout 60)

# all RUN N LINES: LINES in a shell for each process 0 to N-1, whose number is $i; all must end with 0.
all() {
  local run=$1 n=$2 pids=() i
  for ((i = 0; i < n; ++i)); do
    (eval "$3"; exec "$tessera" "${train[@]}" --output "$folder/$run" ${more:-}) >"$folder/$run.$i.log" 2>&1 &
    pids+=($!)
  done
  for i in "${pids[@]}"; do wait "$i" || wrong "a process of the run $run fails"; done
}

for n in 4 8; do
  "$tessera" "${train[@]}" --devices $n --output "$folder/threads$n" >"$folder/threads.log" 2>&1 || wrong "threads fail"
done
# same RUN N: the run has the bits of N threads, which are in $digest then.
same() {
  digest "$1"
  local own=$digest
  digest "threads$2"
  [ "$own" = "$digest" ] || wrong "$1 ends in other bits than $2 threads"
}

all torchrun 4 'export RANK=$i WORLD_SIZE=4 LOCAL_RANK=$i MASTER_ADDR=localhost MASTER_PORT='$(port)
same torchrun 4
{ printf '{"version": "1.0", "server_count": "1", "server_list": [{"server_id": "10.*.*.*", "device": ['
  for ((i = 0; i < 4; ++i)); do printf '%s{"device_id": "%d","device_ip": "192.1.27.6","rank_id": "%d"}' "${comma:-}" $i $i; comma=,; done
  printf '], "host_nic_ip": "reserve"}], "status": "completed"}'; } >"$folder/table.json"
# A table may be gone once the run has begun: this one can be read once, and who reads it again waits for ever.
for i in 0 1 2 3; do
  mkfifo "$folder/table.$i"
  cat "$folder/table.json" >"$folder/table.$i" &
done
all table 4 'export RANK_TABLE_FILE='"$folder"'/table.$i RANK_ID=$i DEVICE_ID=$i RANK_SIZE=4 MASTER_PORT='$(port)
same table 4
more="--devices 8" all hosts 2 'export NNODES=2 NODE_RANK=$i MASTER_ADDR=127.0.0.1 MASTER_PORT='$(port)
same hosts 8
all slurm 4 'export SLURM_PROCID=$i SLURM_STEP_NUM_TASKS=4 SLURM_LOCALID=$i SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NODELIST=localhost MASTER_PORT='$(port)
same slurm 4
"$tessera" launch --backend tcp -n 4 -- "${train[@]}" --output "$folder/launch" >"$folder/launch.log" 2>&1 || wrong "launch fails"
same launch 4
if [ "${3:-}" = mpi ]; then
  "$tessera" launch --backend mpi -n 4 -- "${train[@]}" --output "$folder/mpirun" >"$folder/mpirun.log" 2>&1 || wrong "mpirun fails"
  same mpirun 4
fi

# One of the ranks was started otherwise, or with devices that are not there: told once.
code=0
"$tessera" launch --backend tcp -n 2 -- "${train[@]}" --devices 4 --output "$folder/other" >"$folder/other.log" 2>&1 || code=$?
[ $code = 2 ] || wrong "other devices than ranks have the code $code"
[ "$(grep -c '^error: ' "$folder/other.log")" = 1 ] || wrong "other devices than ranks are not told once"
code=0
RANK=1 "$tessera" "${train[@]}" --output "$folder/half" >"$folder/half.log" 2>&1 || code=$?
[ $code = 2 ] || wrong "RANK without WORLD_SIZE has the code $code"
grep -q "^error: RANK is '1', but WORLD_SIZE is not set" "$folder/half.log" || wrong "RANK without WORLD_SIZE is not told"

# A rank that is killed: the others tell it and end, the launcher with the code of the signal; the run goes on from what
# was saved. One that hangs is told within --distributed-timeout.
long=(train --preset gpt2-tiny --layers 1 --width 32 --context 32 --steps 100000 --save-every 5 --threads 1
  --global-batch-size 8 --data "$folder/sample.txt" --distributed-timeout 3)
# wait_for_steps RUN
wait_for_steps() {
  for ((i = 0; i < 300; ++i)); do ! grep -qs '"step"' "$folder/$1/metrics.jsonl" || return 0; sleep 0.1; done
  wrong "the run $1 makes no step"
}
for signal in KILL STOP; do
  "$tessera" launch --backend tcp -n 3 -- "${long[@]}" --output "$folder/$signal" >"$folder/$signal.log" 2>&1 &
  launcher=$!
  wait_for_steps $signal
  victim=
  for pid in $(pgrep -f -- "--output $folder/$signal\$"); do
    ! tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx RANK=1 || victim=$pid
  done
  [ -n "$victim" ] || wrong "rank 1 is not found"
  kill -$signal $victim
  start=$SECONDS code=0
  wait $launcher || code=$?
  [ $((SECONDS - start)) -le 15 ] || wrong "after SIG$signal the others take $((SECONDS - start)) s"
  [ "$(grep -c '^error: ' "$folder/$signal.log")" = 1 ] || wrong "after SIG$signal there is not one error"
  case $signal in
    KILL) want=137 words="found that rank 1 (process $victim of " ;;
    # One that stops between its letters to the others leaves rank 0 behind as well: it ends, rank 1 does not.
    STOP) want=7 words="does not end: .*rank 1 (" ;;
  esac
  [ $code = $want ] || wrong "after SIG$signal the code is $code, not $want"
  grep -q "$words" "$folder/$signal.log" || wrong "after SIG$signal it is not said that rank 1 is the one"
  ! pgrep -f -- "--output $folder/$signal\$" >/dev/null || wrong "after SIG$signal a process is left"
done

# A request to stop saves; where the launcher itself is killed, no rank is left.
"$tessera" launch --backend tcp -n 2 -- "${long[@]}" --output "$folder/TERM" >"$folder/TERM.log" 2>&1 &
launcher=$!
wait_for_steps TERM
if "$tessera" launch --backend tcp -n 2 --dry-run -- version | grep -q -- ' --bind core '; then # enough cores for both
  for pid in $(pgrep -f -- "--output $folder/TERM\$"); do
    ! tr '\0' '\n' <"/proc/$pid/environ" | grep -q '^RANK=' || grep Cpus_allowed_list "/proc/$pid/status"
  done | sort -u >"$folder/cores"
  [ "$(wc -l <"$folder/cores")" = 2 ] || wrong "two ranks keep to these cores: $(cat "$folder/cores")"
fi
kill -TERM $launcher
code=0
wait $launcher || code=$?
[ $code = 75 ] || wrong "a request to stop ends with the code $code"
"$tessera" launch --backend tcp -n 2 -- "${long[@]}" --output "$folder/left" >"$folder/left.log" 2>&1 &
launcher=$!
wait_for_steps left
kill -KILL $launcher
wait $launcher 2>/dev/null || true
for ((i = 0; i < 50; ++i)); do pgrep -f -- "--output $folder/left\$" >/dev/null || break; sleep 0.1; done
! pgrep -f -- "--output $folder/left\$" >/dev/null || wrong "ranks outlive their launcher"

# The same while its rank waits for the others, of which there is one that never comes.
RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$(port) "$tessera" "${train[@]}" --output "$folder/alone" \
  >"$folder/alone.log" 2>&1 &
rank=$!
for ((i = 0; i < 300; ++i)); do
  # It is no shell any more, and catches SIGTERM.
  ! { grep -q '^Name:.*tessera' /proc/$rank/status && grep -q '^SigCgt:.*[4-7c-f]...$' /proc/$rank/status; } || break
  sleep 0.1
done
kill -TERM $rank
start=$SECONDS code=0
wait $rank || code=$?
[ $code = 75 ] || wrong "a request to stop while a rank waits for others ends with the code $code"
[ $((SECONDS - start)) -le 15 ] || wrong "a request to stop while a rank waits for others takes $((SECONDS - start)) s"
grep -q "stopped on request before the first step" "$folder/alone.log" || wrong "it is not said that a rank was asked to stop"

# There is nothing to save of texts: a first request ends `sample`, alone or on ranks, and no unfinished file stays.
for ((i = 0; i < 2000; ++i)); do echo "le chat $i dort sur la table"; done >"$folder/sources.txt"
sed 's/$/\tthe cat sleeps on the table/' "$folder/sources.txt" >"$folder/pairs.txt"
"$tessera" train --preset transformer-tiny --layers 1 --decoder-layers 1 --width 32 --context 40 --steps 1 --threads 1 \
  --data "$folder/pairs.txt" --output "$folder/pairs" >"$folder/pairs.log" 2>&1 || wrong "a model of pairs is not trained"
sample=(sample "$folder/pairs" --input "$folder/sources.txt" --output "$folder/written.txt" --beams 8 --rows 4)
for how in alone ranks; do
  for signal in TERM USR1; do
    start=() && [ $how = alone ] || start=(launch --backend tcp -n 2 --)
    more=() && [ $how = alone ] || more=(--tensor-model-parallel-size 2 --threads 1)
    "$tessera" "${start[@]}" "${sample[@]}" "${more[@]}" >"$folder/sample.log" 2>&1 &
    asked=$!
    for ((i = 0; i < 300; ++i)); do
      ! compgen -G "$folder/written.txt.partial-*" >/dev/null || break
      sleep 0.1
    done
    sleep 0.1 # it is told to the handler just after it is made
    kill -$signal $asked
    code=0
    wait $asked || code=$?
    [ $code = $((128 + $(kill -l $signal))) ] || wrong "at SIG$signal sample, $how, ends with the code $code"
    grep -q "^ended on request: the texts written so far are discarded" "$folder/sample.log" ||
      wrong "at SIG$signal sample, $how, does not say that its texts are gone"
    ! compgen -G "$folder/written.txt*" >/dev/null || wrong "at SIG$signal sample, $how, leaves $(ls "$folder")"
  done
done
unset more

# What starts the ranks is killed: it is not called by the name of the program.
"$tessera" launch --backend tcp -n 2 -- "${long[@]}" --output "$folder/starter" >"$folder/starter.log" 2>&1 &
launcher=$!
wait_for_steps starter
kill -KILL "$(pgrep -P $launcher)"
code=0
wait $launcher || code=$?
[ $code = 137 ] || wrong "where the starter of the ranks is killed the code is $code"
grep -q "^error: the starter of the ranks was ended by signal 9 (Killed), and its ranks with it" "$folder/starter.log" ||
  wrong "it is not said that the starter of the ranks was killed"
! "$tessera" launch --backend tcp -n 100000 -- version >"$folder/many.log" 2>&1 || wrong "100000 ranks are started"
grep -q "^error: launch: -n 100000: " "$folder/many.log" || wrong "100000 ranks are not refused"

digest threads4
four=$digest
digest threads8
echo "every way to start gives $four on 4 ranks and $digest on 8"
