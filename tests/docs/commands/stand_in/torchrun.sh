#!/bin/bash
# Starts processes with torchrun's variables.
[ "$1" = --no-python ] && [ "$2" = --nproc-per-node ] || { echo "torchrun needs --no-python"; exit 1; }
ranks=()
for ((i = 0; i < $3; i++)); do
  RANK=$i LOCAL_RANK=$i WORLD_SIZE=$3 LOCAL_WORLD_SIZE=$3 MASTER_ADDR=127.0.0.1 "${@:4}" &
  ranks+=($!)
done
for rank in "${ranks[@]}"; do wait $rank || code=$?; done
exit ${code-0}
