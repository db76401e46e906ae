# shellcheck shell=bash
# ./tutti test and ./tutti coverage: build the tests, run them, count.

run_tests() {
  local kind=all
  local -a chosen=()
  case ${1:-} in
    --quick | --memory | --race)
      kind=${1#--}
      chosen=(-L "^$kind\$")
      shift
      ;;
  esac
  # Asked for once, where root runs the tests, and again when another is wanted.
  local asked=$root/build/.test-packages
  if [[ $kind == all && ${EUID:-$(id -u)} == 0 && $(cat "$asked" 2>/dev/null || true) != "$(trim "$test_packages")" ]]; then
    ensure_packages "$test_packages"
    mkdir -p "$root/build"
    trim "$test_packages" >"$asked"
  fi
  recall_torch
  look_for_python_again "$build"
  build_target "${TUTTI_TARGETS:-${kind}_tests}"
  local results=$folder/test-results jobs status=0
  rm -rf "$results"
  mkdir -p "$results"
  jobs=$(($(nproc 2>/dev/null || echo 1) + 1)) # some tests mostly wait: for processes, links, Slurm
  [[ $jobs -le 8 ]] || jobs=8
  # Tests name their own result file; this is for those that do not.
  export GTEST_OUTPUT=xml:$results/
  # The lines that tell what became of each test are what counting starts from; ctest prints them whatever ARGS say.
  ctest --test-dir "$folder" --output-on-failure -j "$jobs" "${chosen[@]}" "$@" 2>&1 | tee "$results/ctest.log" || status=$?
  awk -f "$root/cmake/count_tests.awk" -v results="$results" -v status="$status" "$results/ctest.log"
}

run_coverage() {
  export TUTTI_BUILD=coverage
  local status=0 counts=$root/build/coverage
  command -v gcov >/dev/null || die "gcov, which comes with g++, is missing"
  if [[ -e $counts ]]; then find "$counts" -name '*.gcda' -delete; fi # what earlier runs counted
  run_tests "$@" >&2 || status=$?
  find "$counts" -name '*.gcda' -print0 |
    (cd "$root" && xargs -0 gcov --stdout --relative-only --source-prefix "$root" 2>/dev/null) |
    awk -f "$root/cmake/coverage.awk" || status=1
  if command -v gcovr >/dev/null; then
    mkdir -p "$counts/pages"
    (cd "$root" && gcovr --root . --filter src/ --filter include/ --html-details "$counts/pages/index.html" "$counts") &&
      say "line by line: build/coverage/pages/index.html"
  fi
  return $status
}
