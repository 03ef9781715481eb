#!/bin/bash
# launch_test.sh TESSERA: `tessera launch` with a real mpirun: exit codes, requests to stop, deaths.
set -euo pipefail
tessera=$(realpath "$1")
folder=$(mktemp -d)
launcher=
trap 'kill -KILL $launcher 2>/dev/null || true; rm -rf "$folder"' EXIT
wrong() { printf 'launch_test: %s\n' "$*" >&2; tail -n 5 "$folder"/*.log >&2 || true; exit 1; }

# code_of ARG...: of a launch, its output in $folder/out.log
code_of() {
  local code=0
  timeout 60 "$tessera" launch "$@" >"$folder/out.log" 2>&1 || code=$?
  echo $code
}

# end: waits for the launcher; its exit code in $code
end() {
  code=0
  wait $launcher 2>/dev/null || code=$?
  launcher=
}

[ "$(code_of -n 2 -- version)" = 0 ] || wrong "a command that succeeds has another code than 0"
[ "$(grep -c '^tessera ' "$folder/out.log")" = 2 ] || wrong "two ranks do not print twice"
[ "$(code_of -n 3 -- nosuch)" = 2 ] || wrong "an error of usage has another code than 2"
[ "$(code_of -n 3 -- train --lrr 3)" = 2 ] || wrong "an unknown flag has another code than 2"
[ "$(grep -c 'unknown flag --lrr; nearest is --lr' "$folder/out.log")" = 1 ] || wrong "an unknown flag is not reported once"
! grep -q 'rank 0' "$folder/out.log" || wrong "an unknown flag is reported as that of one rank"
code=0
PATH=$folder "$tessera" launch -n 2 -- version 2>"$folder/out.log" || code=$?
[ $code = 5 ] || wrong "without mpirun the code is $code, not 5"
grep -q 'there is no mpirun in PATH; on Debian: apt-get install openmpi-bin' "$folder/out.log" || wrong "no word of how to get mpirun"
env -i "$tessera" launch -n 2 -- version >"$folder/out.log" 2>&1 || wrong "without an environment nothing runs"

# Closed standard streams: what is opened in their place must not be taken for them.
for closed in '<&-' '>&-' '2>&-' '<&- >&- 2>&-'; do
  code=0
  timeout 20 bash -c '"$1" launch -n 1 -- version '"$closed" bash "$tessera" >"$folder/out.log" 2>&1 || code=$?
  case $closed in *' '* | '>'*) want=5 ;; *) want=0 ;; esac
  [ $code = $want ] || wrong "launch $closed has the code $code, not $want"
done

# Standard output that takes no more is an error of every command, and the run goes on without it.
for command in version "verify --preset gpt2-tiny --layers 1 --steps 1 --json"; do
  code=0
  timeout 60 "$tessera" launch -n 1 -- $command >/dev/full 2>"$folder/out.log" || code=$?
  [ $code = 5 ] || wrong "launch -- $command on a full disk has the code $code, not 5"
  [ "$(grep -c '^error: not all output could be written' "$folder/out.log")" = 1 ] || wrong "that the disk is full is not reported once"
done
[ "$(code_of -n 2 -- verify --preset gpt2-tiny --layers 1 --lr 0.3 --steps 60)" = 6 ] || wrong "numbers that differ have another code than 6"
[ "$(grep -c '^error: ' "$folder/out.log")" = 1 ] || wrong "numbers that differ are not reported once"
grep -q '^error: the mesh computes other numbers' "$folder/out.log" || wrong "it is not said that numbers differ"
[ "$(code_of -n 2 -- verify --preset gpt2-tiny --layers 1 --lr 1e30)" = 6 ] || wrong "numbers that overflow have another code than 6"
[ "$(grep -c '^error: ' "$folder/out.log")" = 1 ] || wrong "numbers that overflow are not reported once"
grep -q '^error: one device alone computes inf or nan' "$folder/out.log" || wrong "it is not said that one device overflows"

# Text: the same on two processes as on one, printed once; an error told once.
for ((i = 0; i < 200; ++i)); do echo "line $i of a text to train on, which is read again and again"; done >"$folder/sample.txt"
"$tessera" train --preset gpt2-tiny --layers 1 --steps 2 --data "$folder/sample.txt" --output "$folder/sampled" >"$folder/out.log" 2>&1 \
  || wrong "no run to sample from"
"$tessera" sample "$folder/sampled" --prompt li --tokens 20 --temperature 0 >"$folder/one.txt" || wrong "sample fails"
for mesh in --tensor-model-parallel-size --pipeline-model-parallel-size; do
  [ "$(code_of -n 2 -- sample "$folder/sampled" --prompt li --tokens 20 --temperature 0 $mesh 2)" = 0 ] || wrong "sample on two ranks fails"
  cmp -s "$folder/one.txt" "$folder/out.log" || wrong "two ranks with $mesh write another text than one"
done
[ "$(code_of -n 2 -- sample "$folder/sampled")" = 2 ] || wrong "ranks that have nothing to do have another code than 2"
[ "$(grep -c '^error: devices 2 is more than' "$folder/out.log")" = 1 ] || wrong "ranks that have nothing to do are not told once"
[ "$(code_of -n 2 -- sample "$folder/nothing" --tensor-model-parallel-size 2)" = 4 ] || wrong "no checkpoint has another code than 4"
[ "$(grep -c '^error: ' "$folder/out.log")" = 1 ] || wrong "that there is no checkpoint is not told once"

# stand_in LINES: a stand-in for mpirun, which does what LINES say after it was asked for its version, and its launch.
make_stand_in() {
  mkdir -p "$folder/bin"
  printf '#!/bin/sh\n[ "$1" != --version ] || { echo Open MPI; exit; }\n: >"%s"\n%s\n' "$folder/started" "$1" >"$folder/bin/mpirun"
  chmod +x "$folder/bin/mpirun"
}
launch_stand_in() { PATH=$folder/bin:$PATH timeout 60 "$tessera" launch -n 2 -- train --distributed-timeout 2; }
stand_in() {
  make_stand_in "$1"
  code=0
  launch_stand_in >"$folder/out.log" 2>&1 || code=$?
}
says() { [ "$(grep -c '^error: ' "$folder/out.log")" = 1 ] && grep -q "^error: $1" "$folder/out.log"; }
# ends WHAT COMMANDS CODE WORDS: where mpirun does so, the launch has the code and says the words, and no other error.
ends() {
  stand_in "$2"
  [ $code = "$3" ] || wrong "$1 gives the code $code, not $3"
  says "$4" || wrong "$1 is not reported as: $4"
}
ends "an mpirun that hangs" 'exec sleep 1000' 7 '.*/mpirun started no rank and did not end; it was ended now'
# Open MPI 4.1 may wait for ever for a rank that was killed while it came up. The launcher looks for ranks once a second at
# least.
ends "an mpirun that waits for ranks which are gone" 'sleep 3; exec perl -e "sleep 1000"' 137 \
  'all ranks ended without an error message (killed, perhaps by the system for lack of memory); .*/mpirun did not notice and was ended now; saved checkpoints are intact'
ends "a rank that was killed without a word" 'exit 137' 137 'a rank was ended by signal 9 (Killed)'
ends "an mpirun that is killed" 'kill -KILL $$' 137 '.*/mpirun was ended by signal 9 (Killed)'
ends "an mpirun that fails" 'echo ------------------------------ >&2; echo there is no such host >&2; exit 243' 5 \
  'the ranks did not finish (.*243); .* says: there is no such host'
ends "a failure that a rank has reported" 'echo "error: a rank says why" >&2; exit 1' 7 'a rank says why'

# The output may have a slow reader: mpirun has not ended while it waits for that, although its ranks have.
make_stand_in 'sleep 0.3; exec perl -e "print qq(a line of output\n) x 20000"'
heard=$( (code=0; launch_stand_in 2>"$folder/out.log" || code=$?; echo $code >"$folder/code") | (sleep 4; wc -l))
[ "$heard" = 20000 ] || wrong "a slow reader gets $heard lines of 20000"
[ "$(cat "$folder/code")" = 0 ] || wrong "a slow reader makes the code $(cat "$folder/code"), not 0"
# ended_in SECONDS: true once the launcher has ended
ended_in() {
  for ((i = 0; i < $1 * 10; ++i)); do
    [ -e /proc/$launcher ] && ! grep -q '^State:.*Z' /proc/$launcher/status 2>/dev/null || return 0
    sleep 0.1
  done
  return 1
}
# begin_stand_in OUTPUT ERRORS [TIMEOUT]: its launcher's process in $launcher, once the stand-in runs, and was not only asked for its version
begin_stand_in() {
  rm -f "$folder/started"
  PATH=$folder/bin:$PATH "$tessera" launch -n 2 -- train --distributed-timeout "${3:-2}" >"$1" 2>"$2" &
  launcher=$!
  for ((i = 0; i < 1000; ++i)); do
    [ ! -e "$folder/started" ] || return 0
    sleep 0.01
  done
  wrong "no stand-in was started within 10 s"
}
# request: a SIGTERM to the launcher, which takes it before another comes: pending signals of one kind are one.
request() {
  kill -TERM $launcher
  for ((i = 0; i < 100; ++i)); do
    grep -q '^ShdPnd:.*[4-7c-f]...$' /proc/$launcher/status 2>/dev/null || return 0
    sleep 0.05
  done
  wrong "a request to stop is not taken"
}
# again: a second request, which comes more than a second behind the first.
again() { sleep 1.1; request; }
# Where nobody reads at all, a second request ends the launch, or a first one after mpirun has ended.
mkfifo "$folder/unread"
exec 9<>"$folder/unread"
# all_said: mpirun has ended, and the launcher waits for its reader alone
all_said() {
  for ((i = 0; i < 100; ++i)); do
    pgrep -P $launcher >/dev/null || return 0
    sleep 0.05
  done
  wrong "a stand-in that says little does not end"
}
# unread WHAT COMMANDS OUT ERR FIRST CODE: where mpirun does so, and FIRST has come, a request ends the launch with the code.
unread() {
  make_stand_in "$2"
  begin_stand_in "$3" "$4"
  $5
  again
  ended_in 5 || wrong "$1 does not end when it is asked to"
  end
  [ $code = "$6" ] || wrong "$1 ends with $code, not $6"
}
unread "a launch whose output nobody reads" 'exec perl -e "print qq(a line of output\n) x 20000"' \
  /dev/fd/9 "$folder/out.log" request 143
unread "a launch whose errors nobody reads" 'exec perl -e "print STDERR qq(a notice\n) x 20000"' \
  "$folder/out.log" /dev/fd/9 request 143
unread "a launch that has nothing to say but its report, which nobody reads" 'exec sleep 1000' "$folder/out.log" /dev/fd/9 request 143
unread "a launch whose output nobody reads after mpirun's end" 'exec perl -e "print qq(a line of output\n) x 3000"' \
  /dev/fd/9 "$folder/out.log" all_said 5
unread "a launch that has failed and whose output nobody reads" \
  'perl -e "print qq(a line of output\n) x 3000"; echo "error: a rank says why" >&2; exit 6' \
  /dev/fd/9 "$folder/out.log" all_said 6
says 'a rank says why' || wrong "a launch that failed before it was asked to stop says something else"
exec 9>&-
# An mpirun that does not end after a second request, although its ranks have.
make_stand_in 'trap "" TERM; sleep 3; exec perl -e "sleep 1000"'
begin_stand_in "$folder/out.log" "$folder/out.log"
request
again
ended_in 20 || wrong "an mpirun that ignores a second request is not ended"
end
[ $code = 143 ] || wrong "an mpirun that ignores a second request gives the code $code, not 143"
says 'ended at once by signal 15 (Terminated), as requested' || wrong "of an mpirun that ignores a second request something else is said"
# A request that is told twice, as timeout does, is one: mpirun is not ended by a signal.
make_stand_in 'trap "exit 9" TERM; IFS= read -r -n 1 word; perl -e "sleep 3"; exit 75'
begin_stand_in "$folder/out.log" "$folder/out.log" 20
request
kill -TERM $launcher
end
[ $code = 75 ] || wrong "a request that is told twice gives the code $code, not 75"
# An mpirun that ends by itself just as it is given up: the launcher, which is in its wait, looks when both have happened. That its
# output ends would count as a sign of life, so that has been seen before.
make_stand_in "exec >&- 2>&-; exec perl -e 'select undef, undef, undef, 0.02 until -e qq($folder/go)'"
begin_stand_in "$folder/out.log" "$folder/out.log" 6
sleep 1
child=$(pgrep -P $launcher) || wrong "an mpirun is given up before its time"
kill -STOP $launcher
: >"$folder/go"
for ((i = 0; i < 100; ++i)); do
  ! grep -q '^State:.*Z' /proc/$child/status || break
  sleep 0.05
done
sleep 6
kill -CONT $launcher
end
[ $code = 0 ] || wrong "an mpirun that has ended well just as it is given up gives the code $code, not 0"
# An mpirun that does not even tell its version.
make_stand_in ''
sed -i 's/{ echo Open MPI; exit; }/exec sleep 1000/' "$folder/bin/mpirun"
PATH=$folder/bin:$PATH "$tessera" launch -n 2 -- train >"$folder/out.log" 2>&1 &
launcher=$!
for ((i = 0; i < 100; ++i)); do
  asked=$(pgrep -P $launcher sleep) || true
  [ -z "$asked" ] || break
  sleep 0.1
done
kill -TERM $launcher
ended_in 5 || true
kill -KILL $asked $launcher 2>/dev/null || true
end
[ $code = 75 ] || wrong "a launch that is asked to stop before there are ranks has the code $code, not 75"

# start RANKS [FLAG...]: a run that takes minutes, its launcher's process in $launcher
for ((i = 0; i < 400; ++i)); do echo "line $i of a text to train on, which is read again and again"; done >"$folder/text.txt"
run_flags=(train --preset llama-tiny --layers 1 --threads 1 --data "$folder/text.txt" --output "$folder/run" --steps 1000000)
begin() {
  rm -rf "$folder/run"
  "$tessera" launch -n "$1" -- "${run_flags[@]}" "${@:2}" >"$folder/run.log" 2>&1 &
  launcher=$!
}
start() {
  begin "$@"
  for ((i = 0; i < 300; ++i)); do
    [ ! -s "$folder/run/metrics.jsonl" ] || return 0
    sleep 0.1
  done
  wrong "no step within 30 s"
}

ranks() { pgrep -f "^$tessera train .*$folder/run"; }
saved() { ls "$folder"/run/checkpoints/step-* >/dev/null 2>&1; }

in_order() {
  [ $code = 75 ] || wrong "$1 has the code $code, not 75"
  saved || wrong "$1 does not save"
  ! grep -q error: "$folder/run.log" || wrong "$1 reports an error"
}
for n in 1 2; do
  start $n
  kill -TERM $launcher
  end
  in_order "a run on $n ranks that is asked to stop"
done
# From when it has started mpirun for the ranks, and not only asked for its version.
begin 2
for ((i = 0; i < 1000; ++i)); do
  ! pgrep -P $launcher -f ' train ' >/dev/null || break
  sleep 0.01
done
kill -TERM $launcher
end
in_order "a run that is asked to stop while it comes up"
# nohup lets a run outlive its terminal.
trap '' HUP
start 2
trap - HUP
kill -HUP $launcher
sleep 3
kill -0 $launcher 2>/dev/null || wrong "a launch by nohup ends when its terminal closes"
kill -TERM $launcher
end
in_order "a launch by nohup that is asked to stop"
# A reader that goes.
rm -rf "$folder/run"
"$tessera" launch -n 2 -- "${run_flags[@]}" --exit-interval 300 --log-every 1 2>"$folder/run.log" | head -1 >"$folder/head.log" || code=$?
[ $code = 141 ] || wrong "a run whose reader goes has the code $code, not 141"
[ -s "$folder/head.log" ] || wrong "a run whose reader goes has printed nothing"
saved || wrong "a run whose reader goes does not save"
[ ! -e "$folder/run/lock" ] || wrong "a run whose reader goes leaves its lock"
# What the number of ranks contradicts.
rm -rf "$folder/run"
for command in "${run_flags[*]}" "verify --preset gpt2-tiny"; do
  [ "$(code_of -n 2 -- $command --devices 1)" = 2 ] || wrong "--devices 1 is overruled in silence"
  [ "$(grep -c '^error: devices is 1, but 2 ranks were launched; leave it out, or launch as many' "$folder/out.log")" = 1 ] || wrong "it is not said once that --devices 1 is another number than that of the ranks"
done
start 2
kill -TERM "$(ranks | tail -1)"
kill -TERM $launcher
end
in_order "a run of which a rank is asked to stop, and then the launcher"
start 2
kill -TERM "$(ranks | tail -1)"
end
in_order "a run of which one rank alone is asked to stop"

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

# While the ranks come up.
begin 2
for ((i = 0; i < 3000; ++i)); do
  rank=$(ranks | tail -1) || true
  [ -z "$rank" ] || break
  sleep 0.01
done
kill -KILL "$rank"
end
[ $code = 137 ] ||
  wrong "a rank that is killed while it comes up has the code $code, not 137"
[ "$(grep -c error: "$folder/run.log")" = 1 ] || wrong "the death of a rank that comes up is not reported once"

start 2 --distributed-timeout 3
kill -STOP "$(ranks | tail -1)"
end
[ $code = 7 ] || wrong "a rank that hangs has the code $code, not 7"
[ "$(grep -c error: "$folder/run.log")" = 1 ] || wrong "a rank that hangs is not reported once"
grep -q 'has waited 3 s in step .*; not arrived: rank ' "$folder/run.log" || wrong "a rank that hangs is not named"

start 2
survivors=$(ranks)
kill -KILL "$(pgrep -P $launcher)"
end
[ $code = 137 ] || wrong "an mpirun that is killed has the code $code, not 137"
[ "$(grep -c error: "$folder/run.log")" = 1 ] || wrong "the death of mpirun is not reported once"
for rank in $survivors; do [ ! -e "/proc/$rank" ] || wrong "a rank outlives its mpirun"; done

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

# Ranks of one run that were started with other flags, or by another program. Rank 1 needs no text: it looks for it elsewhere.
as_root=()
[ "$(id -u)" != 0 ] || as_root=(--allow-run-as-root)
pair() { # FLAG...: of rank 1
  rm -rf "$folder/run"
  code=0
  cp "$folder/text.txt" "$folder/here.txt"
  local flags=(train --preset llama-tiny --layers 1 --threads 1 --data here.txt --output "$folder/run" --steps 2)
  mpirun "${as_root[@]}" --oversubscribe --bind-to none --quiet -wdir "$folder" -n 1 "$tessera" "${flags[@]}" : \
    -wdir / -n 1 "${second:-$tessera}" "${flags[@]}" "$@" >"$folder/run.log" 2>&1 || code=$?
}
pair
[ $code = 0 ] || wrong "a rank other than 0 needs the text (code $code)"
for flags in "--lr 0.01" "--seed 7" "--dropout 0.3" "--optimizer sgd" "--heads 2" "--clip-grad 3" "--log-every 7"; do
  pair $flags
  [ $code = 2 ] || wrong "ranks that differ in $flags end with $code, not 2"
  [ "$(grep -c error: "$folder/run.log")" = 1 ] || wrong "that ranks differ in $flags is not reported once"
  grep -q -- " ${flags% *} is .* on rank 0 and ${flags#* } on rank 1" "$folder/run.log" || wrong "it is not said how ranks differ in $flags"
  [ ! -e "$folder/run" ] || wrong "ranks that differ in $flags touch the output folder"
done
cp "$tessera" "$folder/other"
echo >>"$folder/other"
second=$folder/other pair
[ $code = 2 ] || wrong "ranks of two builds end with $code, not 2"
grep -q 'program is .* on rank 0 and .* on rank 1' "$folder/run.log" || wrong "it is not said that ranks are of two builds"
echo "launch_test: all as it should be"
