#!/bin/bash
# scripts_test.sh: how the scripts start ranks and how they end, with a program in place of the sample's that does what
# STUB says. Signals go to groups, as a terminal sends them, so each run has a group of its own. The folder has a blank.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
T=$(mktemp -d) script=
trap '[ -z "$script" ] || kill -KILL -- "-$script" 2>/dev/null || true; rm -rf "$T"' EXIT
mkdir "$T/a folder"
cd "$T/a folder"
wrong() { printf 'scripts_test: %s\n' "$*" >&2; cat out.txt >&2 || true; exit 1; }
printf '%s\n' '#!/bin/bash' 'echo "$*" >words' 'eval "${STUB:-true}"' >example_wmt_transformer
chmod +x example_wmt_transformer
touch pairs.txt table
export TESSERA_BUILD=$PWD RANK_TABLE_FILE=table STUB=

# run CODE WORDS...: a script in the foreground, and how it must end.
run() {
  local want=$1 code=0
  bash "$HERE/$2.sh" "${@:3}" >out.txt 2>&1 || code=$?
  [ $code = "$want" ] || wrong "$* ends with $code"
}
says() { grep -qFx -- "$1" out.txt || wrong "it does not say '$1'"; }
# start RANKS: run.sh in a group of its own, as $script, once all ranks have made the file `ready`.
start() {
  rm -rf device*
  set -m
  bash "$HERE/run.sh" pairs.txt "$1" >out.txt 2>&1 &
  script=$!
  set +m
  local i
  for ((i = 0; i < 400; i++)); do
    [ "$(ls device*/ready 2>/dev/null | wc -l)" != "$1" ] || return 0
    sleep 0.05
  done
  wrong "the ranks do not start"
}
# ends CODE: it must, and leave nothing of its group.
ends() {
  local code=0
  wait "$script" || code=$?
  [ $code = "$1" ] || wrong "it ends with $code, and not $1"
  local i  # the system collects those that have ended without a parent in its own time
  for ((i = 0; i < 50; i++)); do kill -0 -- "-$script" 2>/dev/null || break; sleep 0.1; done
  [ $i -lt 50 ] || wrong "it leaves a process"
  script=
}

# What ranks are started with. Unless it is told, --mp divides the ranks and the model's eight heads.
for sizes in 16:8 8:8 2:2 3:1 12:4 1:1; do
  run 0 run_cluster pairs.txt table ${sizes%:*} 0 1
  words="--distribute=true --file_path=$PWD/pairs.txt --mp=${sizes#*:} --checkpoint=../test"
  [ "$(cat device0/words)" = "$words" ] || wrong "of ${sizes%:*} ranks: $(cat device0/words)"
done
rm -rf device*
run 0 run_cluster pairs.txt table 16 8
[ "$(echo device*)" = "device10 device11 device12 device13 device14 device15 device8 device9" ] || wrong "other folders"
grep -qx RANK_ID=15 device15/env15.log && grep -qx DEVICE_ID=7 device15/env15.log || wrong "rank 15 has other variables"
run 0 run_parallel_save_ckpt pairs.txt 2 --keep_checkpoint_max=9
grep -q -- '=4 --keep_checkpoint_max=9$' device1/words || wrong "flags do not come last: $(cat device1/words)"
run 0 run_parallel_recover_ckpt pairs.txt 2
grep -q -- ' --recover=true$' device1/words || wrong "it does not recover: $(cat device1/words)"

# Words that are missing, or stand in another's place.
run 2 run_parallel_save_ckpt && says 'bash run.sh DATA RANKS [FLAG...]'
run 2 run_parallel_recover_ckpt pairs.txt && says 'bash run.sh DATA RANKS [FLAG...]'
run 2 run pairs.txt --mp 2 && says 'bash run.sh DATA RANKS [FLAG...]'
run 2 run pairs.txt 0 && says 'bash run.sh DATA RANKS [FLAG...]'
run 2 run_cluster pairs.txt table 16 0 --mp 2 && says "'--mp' stands where a number of ranks is expected"
run 2 run_cluster pairs.txt table 16 08 && says "'08' stands where a number of ranks is expected"
run 2 run_cluster pairs.txt table 16 12 && says "8 ranks from rank 12 on are not among the 16 of RANK_SIZE"
run 1 run nothing.txt 2
says "there is no $PWD/nothing.txt; tessera prepare wmt14 --input FOLDER --output FOLDER makes it"
RANK_TABLE_FILE=nothing run 1 run pairs.txt 2
grep -q "^there is no rank table $PWD/nothing; there are: rank_table_16" out.txt || wrong "no table is no error"
code=0
(cd /proc && exec bash "$HERE/run_cluster.sh" "$OLDPWD/pairs.txt" "$OLDPWD/table" 2 0 2) >out.txt 2>&1 || code=$?
[ $code = 1 ] || wrong "where no folder can be made it ends with $code"
says "/proc/device0 cannot be made; start in a folder that you may write to"

# A request to stop comes to each rank once, from a terminal or to the script alone, and all are waited for.
STUB='trap "kill \$!; echo asked >>asked; sleep 0.5; exit 75" TERM; sleep 1000 & : >ready; wait'
for how in "-INT -- -" "-HUP -- -" "-TERM " "-INT " "-USR1 "; do
  start 3
  kill $how$script
  ends 75
  [ "$(cat device*/asked | wc -l)" = 3 ] || wrong "kill $how: three ranks were asked $(cat device*/asked | wc -l) times"
  says 'training stopped, as asked; run_parallel_recover_ckpt.sh goes on from what was saved'
done

# Ranks that do not stop are ended by a second request, and killed by a third.
asks() {  # CODE REQUESTS
  start 2
  local i
  for ((i = 0; i < $2; i++)); do kill -TERM "$script"; sleep 0.4; done
  ends "$1"
  says 'training was ended at once, as asked; run_parallel_recover_ckpt.sh goes on from what was saved'
}
STUB='trap "[ ! -e asked ] || { kill \$!; exit 143; }; : >asked" TERM; sleep 1000 & : >ready; while ! wait; do :; done'
asks 143 2
STUB='trap "" TERM; : >ready; exec sleep 1000'
asks 137 3

# A second training in the folder of one that runs is refused and changes nothing, also where the first one's script
# was killed and its ranks go on.
STUB=': >ready; exec sleep 1000'
start 2
kill -KILL "$script"
wait "$script" 2>/dev/null || true
run 1 run pairs.txt 2
says "$PWD/device0 is in use: another training runs here; wait until it has ended, or start in another folder"
run 1 run_cluster pairs.txt table 3 1 2
says "$PWD/device1 is in use: another training runs here; wait until it has ended, or start in another folder"
[ "$(ls device*/ready | wc -l)" = 2 ] || wrong "it has removed files of a training that runs"
kill -KILL -- "-$script"
script= STUB=
run 0 run pairs.txt 2
[ ! -e device0/ready ] || wrong "it leaves files of the training before"

# Ranks fail, and one hangs: it is ended. Each error is told once, and no old one.
mkdir device5
echo 'error: of an earlier run' >device5/train.log5
STUB='echo $$ >pid; echo "a step"; [ $RANK_ID != 2 ] || exec sleep 1000
  printf "error: 2 problems\n  one\n  two\na word\n"; exit 7'
SECONDS=0
run 7 run pairs.txt 3
[ $SECONDS -le 15 ] || wrong "a rank that hangs is waited for, for $SECONDS s"
! kill -0 "$(cat device2/pid)" 2>/dev/null || wrong "a rank that hangs is left"
[ "$(grep -v '^start training' out.txt)" = "training failed, with code 7:
error: 2 problems
  one
  two
did not end by themselves, and were killed: ranks 2" ] || wrong "of a rank that failed and one that hangs it tells this"
STUB='[ $RANK_ID = 0 ] || { : >dies; kill -KILL $$; }; until [ -e ../device1/dies ]; do sleep 0.01; done; exit 7'
run 137 run pairs.txt 2
STUB='echo "no error, but the last lines"; exit 9'
run 9 run pairs.txt 2
says 'no error, but the last lines'
echo "the scripts start and end ranks as they say"
