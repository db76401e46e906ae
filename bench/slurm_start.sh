#!/usr/bin/env bash
# How often starting an MPI program with srun crashes it, for each way in which Slurm's PMIx plugin lets ranks meet
# (docs/studies/slurm.md). The program is MPI's alone: nothing of Tutti runs in it.
#
#   bench/slurm_start.sh [STARTS]    so many of each, 100 unless told; needs root, slurm-wlm, munge and mpicc
#
# Busy loops beside it, three per core, make ranks late for each other.
set -euo pipefail

starts=${1:-100}
root=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
export CLUSTER_TOOL=$root/build/release/tests/cluster/cluster_tool
[[ -x $CLUSTER_TOOL ]] || { echo "slurm_start: build first: ./tutti build cluster_tool" >&2; exit 1; }

folder=$(mktemp -d)
loops=()
clean() {
  [[ ${#loops[@]} -eq 0 ]] || kill "${loops[@]}" 2> /dev/null || true
  [[ ! -e $folder/box ]] || "$root/tests/slurm/slurm_box.sh" down "$folder/box"
  rm -rf "$folder"
}
trap clean EXIT

cat > "$folder/start.c" << 'C'
#include <mpi.h>
int main(int argc, char** argv) {
  int provided, one = 1, sum;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return MPI_Finalize();
}
C
mpicc -o "$folder/start" "$folder/start.c"
"$root/tests/slurm/slurm_box.sh" up "$folder/box" 3 2 1 1
for ((loop = 0; loop < 3 * $(nproc); ++loop)); do
  while :; do :; done &
  loops+=($!)
done

# In turns of ten, so that all meet the same weather.
cat > "$folder/turn" << 'TURN'
for i in 1 2 3 4 5; do
  for ranks in '--nodes=2 --ntasks=5' '--nodes=4 --ntasks=4'; do
    srun --mpi=pmix --wait=3 $ranks "$1" > /dev/null 2>&1 || echo failed
  done
done
TURN
ways=(mixed tree ring)
declare -A failed=([mixed]=0 [tree]=0 [ring]=0)
for ((done = 0; done < starts; done += 10)); do
  for way in "${ways[@]}"; do
    count=$(SLURM_PMIX_FENCE=$way "$root/tests/slurm/slurm_box.sh" run "$folder/box" bash "$folder/turn" "$folder/start" | grep -c failed || true)
    failed[$way]=$((failed[$way] + count))
  done
  echo "after $((done + 10)) starts of each, failed:$(printf ' %s %d' mixed "${failed[mixed]}" tree "${failed[tree]}" ring "${failed[ring]}")"
done
