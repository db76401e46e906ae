#!/usr/bin/env bash
# Fifty faults of the storm for .ci/run, the same ones every time, on this machine alone. tests/storm/run --help: more, and others.
# Some minutes of two processors: each fault takes a run that is disturbed and one that is resumed, of one to four seconds
# of a processor each, and some wait for a time-out.
# The moments of faults differ from time to time. One that breaks something is tried again, so that what fails here can be
# repeated by whoever looks into it; what broke only once is shown all the same.
set -euo pipefail
if ! command -v python3 >/dev/null; then
  echo "storm: needs python3"
  exit 1
fi
run=$(dirname -- "${BASH_SOURCE[0]}")/run
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$run" --seed 1 --faults 50 --jobs 3 --transport shm,mpi --tutti "$1" | tee "$log" && exit 0
again=()
while read -r line; do again+=("$line"); done < <(sed -n 's|^  again: tests/storm/run ||p' "$log")
if [[ ${#again[@]} -eq 0 ]]; then exit 1; fi
for words in "${again[@]}"; do
  # shellcheck disable=SC2086 # several words
  "$run" $words --tutti "$1" </dev/null || { echo "storm: broken twice: $words" && exit 1; }
done
echo "storm: ${#again[@]} of 50 faults broke something once, and held when repeated: see above"
