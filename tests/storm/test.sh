#!/usr/bin/env bash
# Fifty faults of the storm for .ci/run, the same ones every time, on this machine alone. tests/storm/run --help: more, and others.
# Two minutes of two processors: each fault takes a run that is disturbed and one that is resumed, of two to four seconds
# of a processor each (half of that is to load libtorch in every process), and some wait for a time-out.
set -euo pipefail
if ! command -v python3 >/dev/null; then
  echo "storm: needs python3"
  exit 1
fi
exec "$(dirname -- "${BASH_SOURCE[0]}")/run" --seed 1 --faults 50 --jobs 3 --transport shm,mpi --tutti "$1"
