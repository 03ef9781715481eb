#!/bin/bash
# launch_test.sh TESSERA: `tessera launch` with a real mpirun: exit codes, requests to stop, deaths.
set -euo pipefail
tessera=$1
folder=$(mktemp -d)
launcher=
hanging=
trap 'kill -KILL $launcher $hanging 2>/dev/null || true; rm -rf "$folder"' EXIT
wrong() { printf 'launch_test: %s\n' "$*" >&2; tail -n 5 "$folder"/*.log >&2 || true; exit 1; }

# code_of ARG...: of a launch, its output in $folder/out.log
code_of() {
  local code=0
  timeout 60 "$tessera" launch "$@" >"$folder/out.log" 2>&1 || code=$?
  echo $code
}
[ "$(code_of -n 2 -- version)" = 0 ] || wrong "a command that succeeds has another code than 0"
[ "$(grep -c '^tessera ' "$folder/out.log")" = 2 ] || wrong "two ranks do not print twice"
[ "$(code_of -n 3 -- nosuch)" = 2 ] || wrong "an error of usage has another code than 2"
! grep -q mpirun "$folder/out.log" || wrong "mpirun has words of its own"
code=0
PATH=$folder "$tessera" launch -n 2 -- version 2>"$folder/out.log" || code=$?
[ $code = 5 ] || wrong "without mpirun the code is $code, not 5"
grep -q 'there is no mpirun in PATH; on Debian: apt-get install openmpi-bin' "$folder/out.log" || wrong "no word of how to get mpirun"

# An mpirun that hangs without a rank is ended: beside the other tests, for it takes 20 s.
mkdir "$folder/hanging"
printf '#!/bin/sh\n[ "$1" != --version ] || { echo Open MPI; exit; }\nexec sleep 1000\n' >"$folder/hanging/mpirun"
chmod +x "$folder/hanging/mpirun"
(
  code=0
  PATH=$folder/hanging:$PATH timeout 60 "$tessera" launch -n 2 -- version 2>"$folder/hanging.txt" || code=$?
  echo "$code" >"$folder/hanging.code"
) &
hanging=$!

# start RANKS: a run that takes minutes, its launcher's process in $launcher
for ((i = 0; i < 400; ++i)); do echo "line $i of a text to train on, which is read again and again"; done >"$folder/text.txt"
start() {
  rm -rf "$folder/run"
  "$tessera" launch -n "$1" -- train --preset llama-tiny --layers 1 --threads 1 --data "$folder/text.txt" \
    --output "$folder/run" --steps 1000000 --save-every 1000000 >"$folder/run.log" 2>&1 &
  launcher=$!
  for ((i = 0; i < 300; ++i)); do
    [ ! -s "$folder/run/metrics.jsonl" ] || return 0
    sleep 0.1
  done
  wrong "no step within 30 s"
}

# end: waits for the launcher; its exit code in $code
end() {
  code=0
  wait $launcher 2>/dev/null || code=$?
  launcher=
}
ranks() { pgrep -f "^$tessera train .*$folder/run"; }
saved() { ls "$folder"/run/checkpoints/step-* >/dev/null 2>&1; }

for n in 1 2; do
  start $n
  kill -TERM $launcher
  end
  [ $code = 75 ] || wrong "a run on $n ranks that is asked to stop has the code $code, not 75"
  saved || wrong "a run on $n ranks that is asked to stop does not save"
  ! grep -q error: "$folder/run.log" || wrong "a run on $n ranks that is asked to stop tells of an error"
done

# The death of a rank reaches the others as SIGTERM: no request to save.
for victim in first last; do
  start 2
  [ $victim = first ] && rank=$(ranks | head -1) || rank=$(ranks | tail -1)
  kill -KILL "$rank"
  end
  [ $code = 137 ] || wrong "a run whose $victim rank is killed has the code $code, not 137"
  [ "$(grep -c error: "$folder/run.log")" = 1 ] || wrong "the death of the $victim rank is not told once"
  grep -q "process $rank of .*) has died" "$folder/run.log" || wrong "the death of the $victim rank is not named"
  ! saved || wrong "a run whose $victim rank is killed saves"
done

start 2
survivors=$(ranks)
kill -KILL $launcher
end
for rank in $survivors; do
  for ((i = 0; i < 50; ++i)); do
    [ -e "/proc/$rank" ] && ! grep -q '^State:.*Z' "/proc/$rank/status" 2>/dev/null || continue 2
    sleep 0.1
  done
  wrong "a rank outlives its launcher by 5 s"
done
wait $hanging
[ "$(cat "$folder/hanging.code")" = 137 ] || wrong "an mpirun that hangs is ended with the code $(cat "$folder/hanging.code"), not 137"
grep -q 'no rank under it for 20 s and does not end' "$folder/hanging.txt" || wrong "no word of an mpirun that hangs"
echo "launch_test: all as it should be"
