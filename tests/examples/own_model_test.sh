#!/usr/bin/env bash
# A project outside the tree finds an installed Tutti with find_package, builds, and trains alone and on two ranks.
# $1: the build folder, $2: the folder of examples.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say() { printf 'own_model_test: %s\n' "$*"; }

cmake --install "$1" --component library --prefix "$work/tutti" > "$work/log" || { cat "$work/log" && exit 1; }
cp -r "$2" "$work/examples"
cmake -G Ninja -S "$work/examples/own_model" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/tutti" > "$work/log" 2>&1 &&
  cmake --build "$work/build" >> "$work/log" 2>&1 || { cat "$work/log" && exit 1; }
# A plug-in has a project of its own, too; that it configures is enough here, plugin_test loads one.
cmake -G Ninja -S "$work/examples/plugin" -B "$work/plugin" -DCMAKE_PREFIX_PATH="$work/tutti" > "$work/log" 2>&1 || { cat "$work/log" && exit 1; }

# As torchrun starts them.
ranks() {
  local count=$1 rank status=0
  shift
  local -a pids=()
  for ((rank = 0; rank < count; ++rank)); do
    RANK=$rank WORLD_SIZE=$count LOCAL_RANK=$rank LOCAL_WORLD_SIZE=$count MASTER_ADDR=127.0.0.1 MASTER_PORT=$$ "$@" &
    pids+=($!)
  done
  for rank in "${pids[@]}"; do wait "$rank" || status=1; done
  return $status
}
export OMP_NUM_THREADS=1
say "alone" && "$work/build/own_model"
say "on two ranks" && ranks 2 "$work/build/own_model" | tee "$work/log"
grep -q '^2 ranks: accuracy' "$work/log"
say "collectives on three ranks" && ranks 3 "$work/build/collectives" | tee "$work/log"
# 0..999 plus 1..1000 plus 2..1001
[[ $(grep -c 'of 3: sum 3 to 3000, last square 4,' "$work/log") -eq 3 ]]
if ldd "$work/build/collectives" | grep -q torch; then say "collectives needs libtorch" && exit 1; fi
