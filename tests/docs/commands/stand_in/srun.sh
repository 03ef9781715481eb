#!/bin/bash
# Starts tasks with Slurm's variables: as many as --ntasks says, or as the batch job of the document.
tasks=2
while [[ $1 == -* ]]; do
  case $1 in
    --mpi=none | --cpus-per-task=*) ;;
    --ntasks=*) tasks=${1#*=} ;;
    *) echo "no stand-in for srun $1"; exit 1 ;;
  esac
  shift
done
ranks=()
export SLURM_STEP_NUM_TASKS=$tasks SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_STEP_NODELIST=localhost
for ((i = 0; i < tasks; i++)); do
  SLURM_PROCID=$i SLURM_LOCALID=$i "$@" &
  ranks+=($!)
done
for rank in "${ranks[@]}"; do wait $rank || code=$?; done
exit ${code-0}
