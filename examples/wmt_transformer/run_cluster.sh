#!/bin/bash
# Starts the ranks of one machine of several. Each machine starts its own, all with the same rank table, data and flags:
#   on the first    bash run_cluster.sh DATA rank_table_16pcs.json 16 0
#   on the second   bash run_cluster.sh DATA rank_table_16pcs.json 16 8
# The folder in which it is started must be one that all machines share: logs and checkpoints go there.
#
# A request to stop (Ctrl-C, SIGTERM, SIGHUP, SIGUSR1) is passed on: the ranks save and stop, and this ends with 75. A
# second one ends them at once, a third one kills them. Once a rank has failed, the others have five seconds to say why;
# the exit code is that of the first.
set -euo pipefail
usage() {
  [ $# = 0 ] || echo "$*" >&2
  cat >&2 <<'END'
bash run_cluster.sh DATA RANK_TABLE RANK_SIZE RANK_START [RANKS [FLAG...]]
  DATA        wmt14.fr_en.txt of `tessera prepare wmt14`
  RANK_TABLE  the JSON file that says on which machine each rank is
  RANK_SIZE   ranks of all machines
  RANK_START  the first rank of this machine
  RANKS       ranks of this machine (8)
  FLAG        of wmt_transformer, such as --mp 2 (default: the largest of 8, 4, 2 and 1 that divides RANK_SIZE)
END
  exit 2
}
fail() { echo "$*" >&2; exit 1; }
[ $# -ge 4 ] || usage
for number in "$3" "$4" "${5:-8}"; do
  [[ $number =~ ^(0|[1-9][0-9]{0,4})$ ]] || usage "'$number' stands where a number of ranks is expected"
done
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
BUILD=${TESSERA_BUILD:-$HERE/../../build}
PROGRAM=$(realpath -m -- "$BUILD/example_wmt_transformer")
DATA=$(realpath -m -- "$1") TABLE=$(realpath -m -- "$2") SIZE=$3 START=$4 RANKS=${5:-8}
shift $(($# < 5 ? 4 : 5))
((RANKS > 0 && START + RANKS <= SIZE)) ||
  usage "$RANKS ranks from rank $START on are not among the $SIZE of RANK_SIZE"
[ -x "$PROGRAM" ] || fail "there is no $PROGRAM; run ./dev build, or set TESSERA_BUILD to the build folder"
[ -f "$DATA" ] || fail "there is no $DATA; tessera prepare wmt14 --input FOLDER --output FOLDER makes it"
[ -f "$TABLE" ] || fail "there is no rank table $TABLE; there are: $(cd "$HERE" && echo rank_table_*.json)"
MP=8  # the model has 8 heads
while ((SIZE % MP)); do MP=$((MP / 2)); done

logs=()
for ((i = START; i < START + RANKS; i++)); do
  logs+=("device$i/train.log$i")
  # Held until this and the ranks have ended, however they end; one that was killed has a moment to be gone.
  mkdir -p "device$i" && exec {lock}>>"device$i/lock" ||
    fail "$PWD/device$i cannot be made; start in a folder that you may write to"
  flock -w 5 -E 75 $lock || [ $? != 75 ] ||  # a file system without locks has other codes
    fail "$PWD/device$i is in use: another training runs here; wait until it has ended, or start in another folder"
done
for ((i = START; i < START + RANKS; i++)); do
  find "device$i" -mindepth 1 -maxdepth 1 ! -name lock -exec rm -rf {} + && : >"device$i/train.log$i" ||
    fail "$PWD/device$i cannot be emptied; start in a folder that you may write to"
done
running=()  # by rank: its process
asked=0     # requests to stop
ask_to_stop() {
  asked=$((asked + 1))
  [ ${#running[@]} = 0 ] || kill -$([ $asked -le 2 ] && echo TERM || echo KILL) "${running[@]}" 2>/dev/null || true
}
trap ask_to_stop INT TERM HUP USR1
export RANK_TABLE_FILE=$TABLE RANK_SIZE=$SIZE
for ((i = START; i < START + RANKS && asked == 0; i++)); do
  echo "start training for device $i"
  (
    trap '' INT HUP USR1  # which a terminal sends to all that run in it: they are passed on as SIGTERM
    cd "device$i"
    export DEVICE_ID=$((i - START)) RANK_ID=$i
    env >"env$i.log"
    exec "$PROGRAM" --distribute=true --file_path="$DATA" --mp=$MP --checkpoint=../test "$@" >"train.log$i" 2>&1
  ) &
  running[i]=$!
done
[ $asked = 0 ] || kill -TERM "${running[@]}" 2>/dev/null || true  # also the one that was just being started

code=0 stopped=0 end=0  # of the first that failed; of one that stopped as asked; when the others must have ended
killed=
while [ ${#running[@]} -gt 0 ]; do
  worst=0
  for i in "${!running[@]}"; do
    ! kill -0 "${running[i]}" 2>/dev/null || continue
    of_rank=0
    wait "${running[i]}" 2>/dev/null || of_rank=$?
    unset "running[i]"
    case $of_rank in
      0) ;;
      75) stopped=75 ;;
      *) [ $of_rank -lt $worst ] || worst=$of_rank ;;  # a signal's, where others ended because of it just now
    esac
  done
  [ $code != 0 ] || [ $worst = 0 ] || { code=$worst end=$((SECONDS + 6)); }
  if [ $code != 0 ] && [ $SECONDS -ge $end ] && [ ${#running[@]} -gt 0 ]; then
    [ -z "$killed" ] || break  # the system holds them
    killed=${!running[*]} end=$((SECONDS + 6))
    kill -KILL "${running[@]}" 2>/dev/null || true
  fi
  sleep 0.1 || true
done 2>/dev/null  # bash tells of each process that a signal ends

if [ $asked -gt 0 ] && [ $code -gt 128 ]; then
  echo "training was ended at once, as asked; run_parallel_recover_ckpt.sh goes on from what was saved"
elif [ $code != 0 ]; then
  echo "training failed, with code $code:"
  errors=$(awk '  # each error once, with the lines below it that belong to it
    function tell() { if (error != "" && !told[error]++) print error; error = "" }
    FNR == 1 || !/^ / { tell() }
    /^error/ { error = $0; next }
    error != "" { error = error "\n" $0 }
    END { tell() }' "${logs[@]}") || true
  if [ -n "$errors" ]; then echo "$errors"; else tail -n 3 "${logs[@]}"; fi
  [ -z "$killed" ] || echo "did not end by themselves, and were killed: ranks $killed"
elif [ $stopped != 0 ]; then
  code=$stopped
  echo "training stopped, as asked; run_parallel_recover_ckpt.sh goes on from what was saved"
elif [ "$START" = 0 ]; then
  echo "training success: $(tail -n 1 "${logs[0]}")"
else
  echo "the ranks of this machine have ended: $(tail -n 1 "${logs[0]}")"
fi
exit $code
