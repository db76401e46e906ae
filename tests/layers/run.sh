#!/usr/bin/env bash
# Do the folders of src/ include only what CMake says they link? And does the check of that find what it should?
#
#   TUTTI_LAYERS=build/release/layers.txt tests/layers/run.sh
set -uo pipefail

repository=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

# Sets output and status: what the check says of the tree in the current folder, whose links are in the given file.
check() {
  output=$(find include src \( -name '*.h' -o -name '*.cpp' \) -print0 2>/dev/null | LC_ALL=C sort -z |
    xargs -0 awk -f "$repository/cmake/check_layers.awk" "$1")
  status=$?
}

# A tree in which base is below plan, plan below engine, and all is well; a planted mistake is added to it.
cd "$scratch" || exit 1
plant() {
  rm -rf include src
  mkdir -p include/tutti src/{base,plan,engine,sim}
  printf '%s\n' 'base SELF base' 'plan SELF plan' 'plan PUBLIC base' 'sim SELF sim' 'sim PRIVATE plan' 'engine SELF engine' \
    'engine PUBLIC plan' >layers.txt
  echo 'struct Error {' >include/tutti/error.h
  printf '%s\n' '#include "tutti/error.h"' 'struct Plan {' >include/tutti/plan.h
  echo '#include "tutti/plan.h"' >src/plan/plan.cpp
  echo '#include "tutti/plan.h"' >src/sim/simulator.cpp
  printf '%s\n' '#include <torch/types.h>' '#include "tutti/plan.h"' 'class Engine {' >src/engine/engine.h
}

# expect WHAT TEXT: the check fails and says so; without a text: finds nothing.
expect() {
  check layers.txt
  if [[ $# -eq 1 && ($status -ne 0 || -n $output) ]] || [[ $# -eq 2 && ($status -eq 0 || $output != *"$2"*) ]]; then
    printf 'FAILED  %s: exit status %s, and it said: %s\n' "$1" "$status" "$output"
    ((++failures))
  fi
}

plant
expect "a tree in order"
plant && echo '#include "engine/engine.h"' >>src/plan/plan.cpp
expect "a folder above" "src/plan/plan.cpp:2: plan does not link engine"
plant && echo '#include "tutti/plan.h"' >src/sim/simulator.h
expect "a header over a private link" "src/sim/simulator.h:1: sim links plan PRIVATE, but a header includes it"
plant && echo 'engine PRIVATE sim' >>layers.txt
expect "a link that nobody needs" "src/engine/CMakeLists.txt: links sim, which nothing there includes"
plant && sed -i 's/sim PRIVATE plan/sim PUBLIC plan/' layers.txt
expect "a public link for sources alone" "src/sim/CMakeLists.txt: links plan PUBLIC, but no header there includes it"
plant && { echo 'plan PRIVATE engine' >>layers.txt && echo '#include "engine/engine.h"' >>src/plan/plan.cpp; }
expect "a link to a folder above" "src/plan/CMakeLists.txt: links engine, which comes after it"
plant && echo '#include <ATen/Tensor.h>' >>src/plan/plan.cpp
expect "libtorch where it does not belong" "src/plan/plan.cpp:2: plan is to do without libtorch"
plant && { echo 'int kept;' >src/plan/kept.h && echo '#include "plan/kept.h"' >>include/tutti/plan.h; }
expect "a public header with one that is not" "include/tutti/plan.h:3: a public header includes plan/kept.h"
plant && echo 'int x;' >include/tutti/other.h
expect "a public header of nobody" "include/tutti/other.h: no folder, or more than one, has a source of this name"
plant && { mkdir src/lost && echo 'int x;' >src/lost/lost.cpp; }
expect "a folder without a target" "src/lost/lost.cpp: lost is no target"
plant && echo 'class Plan : public Other {' >src/engine/parts.h
expect "two types of one name" "src/engine/parts.h:1: Plan is a type of plan, too"
plant && echo 'class Plan;' >src/engine/parts.h
expect "a type that is only announced"

cd "$repository" || exit 1
check "${TUTTI_LAYERS:-build/release/layers.txt}"
if [[ $status -ne 0 ]]; then
  printf 'FAILED  this tree:\n%s\n' "$output"
  ((++failures))
fi
[[ $failures -eq 0 ]]
