#!/usr/bin/env bash
# Tests of ./tutti itself: what it says and how it ends, in copies of the tree whose sources are a few lines.
set -uo pipefail

repository=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/tutti script test XXXXXX") # with spaces, as paths are
trap 'rm -rf "$scratch"' EXIT
unset TORCH_DIR TUTTI_BUILD TUTTI_NO_INSTALL TUTTI_PYTHON PYTHONPATH CI

# --- a few words for the tests --------------------------------------------------------------------------------------

failed=
fail() {
  failed+="$*"$'\n'
}
expect_status() { [[ $status -eq $1 ]] || fail "exit status $status instead of $1; it said: $output"; }
expect_text() { [[ $output == *"$1"* ]] || fail "does not say '$1' but: $output"; }
expect_no_text() { [[ $output != *"$1"* ]] || fail "says '$1': $output"; }
expect_last_line() { [[ ${output##*$'\n'} == "$1" ]] || fail "ends with '${output##*$'\n'}' instead of '$1'"; }
# Runs a command; sets output (stdout and stderr) and status.
capture() {
  output=$("$@" 2>&1 </dev/null)
  status=$?
}

# A folder with the programs ./tutti uses, as links, less those named: the PATH of a machine that lacks them.
path_without() {
  local folder program name
  folder=$(mktemp -d "$scratch/path XXXXXX")
  for program in bash env readlink dirname id awk cat cut dpkg-query find flock grep head ln mkdir mktemp mv nproc paste rm \
    sed sort tail tee touch tr uname xargs cmake ninja c++ g++ cc gcc ld as ar ranlib ctest git apt-get sudo curl; do
    for name in "$@"; do [[ $name == "$program" ]] && continue 2; done
    name=$(command -v "$program") && ln -s "$name" "$folder/$program"
  done
  # Optional ones that are not run here: there, whether this machine has them or not.
  for program in ip mpirun mpicxx munged slurmctld chromium python3 gnuplot; do ln -s "$(type -P true)" "$folder/$program"; done
  printf '%s' "$folder"
}

# A tree with the real ./tutti and a project of its own that needs no libraries: fast to configure and build.
small_tree() {
  local tree
  tree=$(mktemp -d "$scratch/tree XXXXXX")
  cp "$repository/tutti" "$repository/CMakePresets.json" "$tree/"
  mkdir -p "$tree/cmake" "$tree/tests/some" "$tree/torch/share/cmake/Torch"
  cp -r "$repository/cmake/tutti" "$repository/cmake/tutti_targets.cmake" "$repository/cmake/count_tests.awk" "$tree/cmake/"
  touch "$tree/torch/share/cmake/Torch/TorchConfig.cmake"
  cat >"$tree/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.20)
project(small LANGUAGES CXX)
enable_testing()
include(cmake/tutti_targets.cmake)
add_executable(tutti main.cpp)
tutti_check_tests()
add_test(NAME good COMMAND ${CMAKE_COMMAND} -E true)
END
  cat >"$tree/main.cpp" <<'END'
#include <cstdio>
#include <cstdlib>
int main(int count, char** words) {
  for (int i = 1; i < count; ++i) std::printf("[%s]", words[i]);
  if (const char* path = std::getenv("PYTHONPATH")) std::printf("{%s}", path);
}
END
  printf '%s' "$tree"
}
has_compiler() { command -v c++ >/dev/null && command -v cmake >/dev/null && command -v ninja >/dev/null; }

# --- tests ----------------------------------------------------------------------------------------------------------

test_a_torch_dir_without_torch_is_refused_by_name() {
  capture env TORCH_DIR="$scratch" "$repository/tutti" --version
  expect_status 1
  expect_text "TORCH_DIR is $scratch"
  expect_text "no TorchConfig.cmake"
}

test_an_unknown_build_is_refused_with_the_known_ones() {
  capture env TUTTI_BUILD=fast "$repository/tutti" --version
  expect_status 1
  expect_text "TUTTI_BUILD is fast; known: release, debug, asan, tsan, coverage, cuda"
}

test_a_tree_that_cannot_be_written_is_said_to_be_so() {
  local tree
  tree=$(small_tree)
  touch "$tree/build" # as root may write anywhere, something else is in the way
  capture env TORCH_DIR="$tree/torch" "$tree/tutti" train
  expect_status 1
  expect_last_line "tutti: cannot write to $tree/build, where builds go: the disk is read-only, or the tree is somebody else's. Make it writable, or take a copy of the tree: cp -r $tree somewhere, and run that one's ./tutti"
}

test_a_missing_package_is_named_with_its_reason_and_not_installed_when_that_is_forbidden() {
  local tree path
  tree=$(small_tree)
  path=$(path_without cmake dpkg-query apt-get sudo)
  printf '#!/bin/sh\nexit 1\n' >"$path/dpkg-query"
  printf '#!/bin/sh\necho installed >"%s"\n' "$tree/was-called" >"$path/apt-get"
  chmod +x "$path/dpkg-query" "$path/apt-get"
  capture env -i PATH="$path" TUTTI_NO_INSTALL=1 TORCH_DIR="$tree/torch" "$tree/tutti" --version
  expect_status 1
  expect_text "cmake                 configures the build"
  expect_text "apt-get update && "
  expect_text "apt-get install -y --no-install-recommends cmake"
  [[ ! -e $tree/was-called ]] || fail "apt-get was called"
}

test_a_missing_package_is_installed_with_apt_get_and_nothing_else() {
  local tree path
  tree=$(small_tree)
  path=$(path_without cmake dpkg-query apt-get sudo)
  printf '#!/bin/sh\nexit 1\n' >"$path/dpkg-query"
  # Stands for root's apt-get, or for sudo that asks for no password.
  printf '#!/bin/sh\necho "$@" >>"%s"\ncase "$*" in *" -y "*) ln -s "%s" "%s/cmake" ;; esac\n' \
    "$tree/calls" "$(command -v cmake)" "$path" >"$path/apt-get"
  printf '#!/bin/sh\n[ "$1" = -n ] && shift\nexec "$@"\n' >"$path/sudo"
  chmod +x "$path/dpkg-query" "$path/apt-get" "$path/sudo"
  capture env -i PATH="$path" TORCH_DIR="$tree/torch" "$tree/tutti" one "two words"
  expect_status 0
  expect_last_line "[one][two words]"
  [[ $(grep -c -- ' -y ' "$tree/calls") == 1 ]] || fail "apt-get was called with: $(cat "$tree/calls")"
  grep -q -- 'install -y --no-install-recommends cmake$' "$tree/calls" || fail "apt-get: $(cat "$tree/calls")"
}

test_an_optional_package_that_cannot_be_installed_is_done_without() {
  local tree path
  tree=$(small_tree)
  path=$(path_without curl dpkg-query)
  printf '#!/bin/sh\nexit 1\n' >"$path/dpkg-query"
  chmod +x "$path/dpkg-query"
  capture env -i PATH="$path" TUTTI_NO_INSTALL=1 TORCH_DIR="$tree/torch" "$tree/tutti" x
  expect_status 0
  expect_text "curl                  optional: tutti data get"
  expect_text "apt-get install -y --no-install-recommends curl"
  expect_last_line "[x]"
}

test_a_package_without_root_and_without_a_password_is_left_to_the_user() {
  local tree path
  local -a as_nobody=()
  [[ $(id -u) == 0 ]] && as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
  tree=$(small_tree)
  path=$(path_without cmake dpkg-query sudo)
  printf '#!/bin/sh\nexit 1\n' >"$path/dpkg-query"
  printf '#!/bin/sh\nexit 1\n' >"$path/sudo"
  chmod +x "$path/dpkg-query" "$path/sudo"
  chmod -R a+rX "$scratch"
  capture "${as_nobody[@]}" env -i PATH="$path" TORCH_DIR="$tree/torch" "$tree/tutti" x
  expect_status 1
  expect_text "run: sudo apt-get update && sudo apt-get install -y --no-install-recommends cmake"
}

test_it_runs_through_a_link_from_anywhere_and_keeps_arguments_and_stdout() {
  local tree
  tree=$(small_tree)
  ln -s "$tree/tutti" "$scratch/a link"
  output=$(cd / && env -i PATH="$PATH" TORCH_DIR="$tree/torch" "$scratch/a link" train --name "two words" '*' '' 2>/dev/null)
  status=$?
  expect_status 0
  [[ $output == '[train][--name][two words][*][]' ]] || fail "printed $output"
  output=$(TORCH_DIR="$tree/torch" "$tree/tutti" 2>/dev/null)
  [[ $output == '[--help]' ]] || fail "without arguments it printed $output"
  output=$(TORCH_DIR="$tree/torch" "$tree/tutti" help train 2>&1)
  [[ $output == '[train][--help]' ]] || fail "help train printed $output"
}

test_a_copy_of_the_script_alone_says_what_is_missing() {
  cp "$repository/tutti" "$scratch/alone"
  capture "$scratch/alone" train
  expect_status 1
  [[ $output == "tutti: $scratch/cmake/tutti/say.sh is missing: "* ]] || fail "said $output"
}

test_with_everything_built_it_says_and_does_nothing_but_run_the_command() {
  local tree later
  tree=$(small_tree)
  capture env TORCH_DIR="$tree/torch" "$tree/tutti" train
  expect_status 0
  touch "$scratch/now"
  capture env TORCH_DIR="$tree/torch" "$tree/tutti" train
  [[ $output == '[train]' ]] || fail "said $output"
  later=$(find "$tree" -newer "$scratch/now")
  [[ -z $later ]] || fail "wrote $later"
}

test_a_changed_source_is_built_and_a_new_libtorch_configured() {
  local tree
  tree=$(small_tree)
  capture env TORCH_DIR="$tree/torch" "$tree/tutti" train
  sed -i 's/\[%s\]/<%s>/' "$tree/main.cpp"
  capture env TORCH_DIR="$tree/torch" "$tree/tutti" train
  expect_last_line "<train>"
  cp -r "$tree/torch" "$tree/other torch"
  capture env TORCH_DIR="$tree/other torch/share/cmake" "$tree/tutti" train
  expect_text "configuring build/release with TORCH_DIR's libtorch ($tree/other torch/share/cmake/Torch)"
  expect_last_line "<train>"
}

test_a_failing_build_shows_the_error_and_where_the_rest_is() {
  local tree
  tree=$(small_tree)
  echo 'int main() { return nonsense; }' >"$tree/main.cpp"
  capture env TORCH_DIR="$tree/torch" "$tree/tutti" train
  expect_status 1
  expect_text "nonsense"
  expect_text "build/release/build.log"
}

test_two_at_once_build_once() {
  local tree first second
  tree=$(small_tree)
  TORCH_DIR="$tree/torch" "$tree/tutti" one >"$scratch/one" 2>"$scratch/one.err" &
  first=$!
  TORCH_DIR="$tree/torch" "$tree/tutti" two >"$scratch/two" 2>"$scratch/two.err" &
  second=$!
  wait "$first" || fail "the first failed: $(cat "$scratch/one.err")"
  wait "$second" || fail "the second failed: $(cat "$scratch/two.err")"
  [[ $(cat "$scratch/one" "$scratch/two") == '[one][two]' ]] || fail "printed $(cat "$scratch/one" "$scratch/two")"
  [[ $(cat "$scratch"/{one,two}.err | grep -c configuring) == 1 ]] || fail "$(cat "$scratch"/{one,two}.err)"
}

test_a_build_under_way_is_waited_for() {
  local tree mine i
  tree=$(small_tree)
  mkdir -p "$tree/build/release"
  exec 8>>"$tree/build/release/.lock"
  flock 8
  TORCH_DIR="$tree/torch" "$tree/tutti" one >"$scratch/waits" 2>"$scratch/waits.err" 8>&- &
  mine=$!
  for ((i = 0; i < 300; ++i)); do
    grep -q 'waiting for another build in build/release' "$scratch/waits.err" && break
    sleep 0.1
  done
  [[ $i -lt 300 ]] || fail "it did not say that it waits: $(cat "$scratch/waits.err")"
  [[ ! -e $tree/build/release/CMakeCache.txt ]] || fail "it did not wait"
  exec 8>&-
  wait "$mine" || fail "$(cat "$scratch/waits.err")"
  [[ $(cat "$scratch/waits") == '[one]' ]] || fail "printed $(cat "$scratch/waits")"
}

test_a_test_file_that_nobody_builds_stops_the_build_by_name() {
  local tree
  tree=$(small_tree)
  capture env TUTTI_NO_INSTALL=1 TORCH_DIR="$tree/torch" "$tree/tutti" test
  expect_status 0
  expect_last_line "tests: 1 passed, 0 failed, 0 skipped"
  touch "$tree/tests/some/forgotten_test.cpp"
  capture env TUTTI_NO_INSTALL=1 TORCH_DIR="$tree/torch" "$tree/tutti" test
  expect_status 1
  expect_text "tests/some/forgotten_test.cpp is built by no target"
  expect_no_text "tests: "
}

test_no_test_that_matches_is_a_failure() {
  local tree
  tree=$(small_tree)
  capture env TUTTI_NO_INSTALL=1 TORCH_DIR="$tree/torch" "$tree/tutti" test -R no_such_test
  expect_status 1
  expect_text "no test ran"
  expect_last_line "tests: 0 passed, 0 failed, 0 skipped"
}

test_quick_builds_and_runs_only_what_is_labelled_so() {
  local tree
  tree=$(small_tree)
  cat >>"$tree/CMakeLists.txt" <<'END'
tutti_label_test(good tutti quick)
add_executable(broken broken.cpp)
add_test(NAME slow COMMAND broken)
tutti_label_test(slow broken)
END
  echo 'int main() { return 1; }' >"$tree/broken.cpp"
  capture env TUTTI_NO_INSTALL=1 TORCH_DIR="$tree/torch" "$tree/tutti" test --quick
  expect_status 0
  expect_no_text "slow"
  expect_last_line "tests: 1 passed, 0 failed, 0 skipped"
  [[ -e $tree/build/release/tutti && ! -e $tree/build/release/broken ]] || fail "built $(ls "$tree/build/release")"
  capture env TUTTI_NO_INSTALL=1 TORCH_DIR="$tree/torch" "$tree/tutti" test
  expect_status 1
  expect_last_line "tests: 1 passed, 1 failed, 0 skipped"
}

test_clean_removes_the_build_folder_only() {
  local tree
  tree=$(small_tree)
  mkdir -p "$tree/build/release"
  capture "$tree/tutti" clean
  expect_status 0
  [[ ! -e $tree/build && -e $tree/main.cpp ]] || fail "left $(ls "$tree")"
}

# Counts ctest's lines and reports, given as NAME.xml files in $results.
count() {
  capture awk -f "$repository/cmake/count_tests.awk" -v results="$results" -v status="$1" "$results/ctest.log"
}

report() {
  local name=$1
  {
    echo '<?xml version="1.0" encoding="UTF-8"?>'
    echo '<testsuites tests="9" failures="9" disabled="0" errors="0" time="0.1" name="AllTests">'
    echo '  <testsuite name="Suite" tests="9" failures="9" disabled="0" skipped="9" errors="0" time="0.1">'
    cat
    echo '  </testsuite>'
    echo '</testsuites>'
  } >"$results/$name.xml"
}

test_counting_adds_up_cases_crashes_timeouts_and_tests_without_a_report() {
  results=$(mktemp -d "$scratch/results XXXXXX")
  report all_good <<'END'
    <testcase name="A" file="a.cpp" line="1" status="run" result="completed" time="0." classname="Good" />
    <testcase name="B" file="a.cpp" line="2" status="run" result="completed" time="0." classname="Good">
      <properties><property name="x" value="1"/></properties>
    </testcase>
END
  report mixed <<'END'
    <testcase name="Fails" status="run" result="completed" time="0." classname="Mixed">
      <failure message="a.cpp:3&#x0A;first" type=""><![CDATA[a.cpp:3
    <testcase name="not one" result="skipped" classname="Mixed"/>
first]]></failure>
      <failure message="a.cpp:4&#x0A;second" type=""><![CDATA[a.cpp:4
second]]></failure>
    </testcase>
    <testcase name="Skips" status="run" result="skipped" time="0." classname="Mixed">
      <skipped message="a.cpp:9&#x0A;no &quot;GPU&quot; here&#x0A;"><![CDATA[a.cpp:9
no "GPU" here
]]></skipped>
    </testcase>
    <testcase name="DISABLED_Old" status="notrun" result="suppressed" time="0." classname="Mixed" />
    <testcase name="Passes" status="run" result="completed" time="0." classname="Mixed" />
END
  report fails_at_exit <<'END'
    <testcase name="A" status="run" result="completed" time="0." classname="Exit" />
END
  cat >"$results/ctest.log" <<'END'
    Start 1: all_good
1/8 Test #1: all_good .........................   Passed    0.01 sec
2/8 Test #2: mixed ............................***Failed    0.02 sec
output of mixed
3/8 Test #3: crashes ..........................***Exception: SegFault  0.10 sec
4/8 Test #4: hangs ............................***Timeout   1.01 sec
5/8 Test #5: fails_at_exit ....................***Failed    0.02 sec
6/8 Test #6: a_script .........................   Passed    0.02 sec
7/8 Test #7: skipping_script ..................***Skipped   0.02 sec
8/8 Test #8: unbuilt ..........................***Not Run   0.00 sec
END
  count 8
  expect_status 1
  # Passed: 2 of all_good, 1 of mixed, 1 of fails_at_exit, a_script. Failed: 1 of mixed, 4 executables as a whole.
  expect_last_line "tests: 5 passed, 5 failed, 3 skipped"
  expect_text 'skipped: Mixed.Skips: no "GPU" here'
  expect_text "skipped: Mixed.DISABLED_Old: disabled in the source"
  expect_text "skipped: skipping_script"
  expect_text "failed: Mixed.Fails"
  expect_text "failed: crashes as a whole: Exception: SegFault"
}

test_counting_takes_a_report_cut_short_as_a_failure() {
  results=$(mktemp -d "$scratch/results XXXXXX")
  echo '<testsuites tests="2"><testsuite name="S">' >"$results/cut.xml"
  echo '1/1 Test #1: cut .....***Exception: SegFault  0.10 sec' >"$results/ctest.log"
  count 8
  expect_status 1
  expect_last_line "tests: 0 passed, 1 failed, 0 skipped"
}

test_counting_fails_when_ctest_fails_or_everything_was_skipped() {
  results=$(mktemp -d "$scratch/results XXXXXX")
  echo '1/1 Test #1: fine .....   Passed  0.10 sec' >"$results/ctest.log"
  count 0
  expect_status 0
  expect_last_line "tests: 1 passed, 0 failed, 0 skipped"
  count 1
  expect_status 1
  expect_text "ctest itself failed"
  echo '1/1 Test #1: fine .....***Skipped  0.10 sec' >"$results/ctest.log"
  count 0
  expect_status 1
  expect_last_line "tests: 0 passed, 0 failed, 1 skipped"
}

test_ranks_find_the_python_module_that_was_built_for_their_pytorch() {
  local tree folder
  tree=$(small_tree)
  # Stand for python3 that says where its PyTorch is, that Tutti is installed there, or that it has no PyTorch.
  for folder in debian pip installed none; do mkdir -p "$tree/$folder"; done
  printf '#!/bin/sh\necho /usr/lib/python3/dist-packages/torch/__init__.py\n' >"$tree/debian/python3"
  printf '#!/bin/sh\necho /home/me/torch/__init__.py\n' >"$tree/pip/python3"
  printf '#!/bin/sh\necho installed\n' >"$tree/installed/python3"
  printf '#!/bin/sh\nexit 1\n' >"$tree/none/python3"
  chmod +x "$tree"/*/python3
  capture env TORCH_DIR="$tree/torch" "$tree/tutti" --version
  folder=$(dirname "$(find "$tree/build" -name tutti -type f)")
  mkdir -p "$folder/python/tutti" "$tree/build/torch-2.9/python/tutti" "$tree/build/torch-2.8/python/tutti"
  echo "torch-2.8 /home/me/other/torch/share/cmake/Torch $tree" >"$tree/build/torch-2.8/.tutti-configured"
  echo "torch-2.9 /home/me/torch/share/cmake/Torch $tree" >"$tree/build/torch-2.9/.tutti-configured"
  run_with() { capture env -u PYTHONPATH TORCH_DIR="$tree/torch" "$tree/tutti" run -- "$tree/$1/python3"; }
  run_with debian
  expect_text "{$folder/python}"
  run_with pip
  expect_text "{$tree/build/torch-2.9/python}"
  run_with none
  expect_text "{$folder/python}"
  run_with installed
  expect_no_text "{"
}

# A folder with a python3 that says of its PyTorch: KIND, VERSION, where it is or why it is of no use. It looks for
# packages in the folder `packages` beside it.
python_that_says() {
  local folder
  folder=$(mktemp -d "$scratch/python XXXXXX")
  mkdir "$folder/packages"
  printf '#!/bin/sh\ncat "%s/answer"\n' "$folder" >"$folder/python3"
  printf '%s\n' "$@" "$folder/packages" >"$folder/answer"
  chmod +x "$folder/python3"
  touch -d '1 minute ago' "$folder/packages"
  printf '%s' "$folder"
}
has_system_torch() { compgen -G '/usr/lib/*/cmake/Torch/TorchConfig.cmake' >/dev/null; }

test_the_pytorch_of_python3_is_built_with_in_a_folder_of_its_own() {
  local tree python
  tree=$(small_tree)
  python=$(python_that_says usable 2.9.1 "$tree/torch/share/cmake")
  capture env PATH="$python:$PATH" "$tree/tutti" x
  expect_status 0
  expect_text "configuring build/torch-2.9 with PyTorch 2.9.1 of python3 ($tree/torch/share/cmake/Torch)"
  expect_last_line "[x]"
  capture env PATH="$python:$PATH" "$tree/tutti" x
  [[ $output == "[x]" ]] || fail "the second time it said $output"
  # TORCH_DIR decides otherwise; back again nothing is configured or built.
  cp -r "$tree/torch" "$tree/mine"
  capture env PATH="$python:$PATH" TORCH_DIR="$tree/mine" "$tree/tutti" x
  expect_text "configuring build/release with TORCH_DIR's libtorch"
  capture env PATH="$python:$PATH" "$tree/tutti" x
  expect_no_text "configuring"
  # Another python3 is asked by name.
  capture env TUTTI_PYTHON="$(python_that_says usable 2.10.0 "$tree/mine/share/cmake")/python3" "$tree/tutti" x
  expect_text "configuring build/torch-2.10 with PyTorch 2.10.0 of "
}

test_a_python3_without_a_usable_pytorch_leaves_the_build_to_debian_and_says_why() {
  has_system_torch || return 0
  local tree python
  tree=$(small_tree)
  python=$(python_that_says unusable 2.0.1 "it is older than 2.1")
  capture env PATH="$python:$PATH" "$tree/tutti" x
  expect_status 0
  expect_text "tutti: python3 has PyTorch 2.0.1, but it is older than 2.1: building with Debian's libtorch"
  expect_text "configuring build/release with Debian's libtorch"
  [[ $(grep -c "but it is older" <<<"$output") == 1 ]] || fail "said it more than once: $output"
  python=$(python_that_says none "" "")
  capture env PATH="$python:$PATH" "$tree/tutti" x
  [[ $output == "[x]" ]] || fail "without a PyTorch it said $output"
  # One that is installed there later is noticed.
  printf '%s\n' usable 2.9.1 "$tree/torch/share/cmake" "$python/packages" >"$python/answer"
  touch -d '1 minute' "$python/packages"
  capture env PATH="$python:$PATH" "$tree/tutti" x
  expect_text "configuring build/torch-2.9"
  # And left alone by a build that asks for Debian's.
  capture env PATH="$python:$PATH" TUTTI_BUILD=release "$tree/tutti" x
  [[ $output == "[x]" ]] || fail "with TUTTI_BUILD=release it said $output"
}

# --- runs them and reports as GoogleTest does -----------------------------------------------------------------------

escaped() { sed -e 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g; s/"/\&quot;/g' | tr '\n' ' '; }

if ! has_compiler; then
  echo "cmake, ninja and a compiler are needed" >&2
  exit 1
fi
cases="" count=0 failures=0
for name in $(declare -F | awk '{print $3}' | grep '^test_' | grep -E -- "${1:-.}"); do
  failed=
  start=$SECONDS
  "$name"
  ((++count))
  title=${name#test_}
  if [[ -z $failed ]]; then
    echo "ok      $title ($((SECONDS - start)) s)"
    cases+="<testcase name=\"$title\" status=\"run\" result=\"completed\" classname=\"TuttiScript\" />"$'\n'
  else
    ((++failures))
    printf 'FAILED  %s\n%s' "$title" "$failed"
    cases+="<testcase name=\"$title\" status=\"run\" result=\"completed\" classname=\"TuttiScript\">"$'\n'
    cases+="<failure message=\"$(escaped <<<"$failed")\"></failure>"$'\n</testcase>\n'
  fi
done
if [[ ${GTEST_OUTPUT:-} == xml:*.xml ]]; then
  mkdir -p "$(dirname "${GTEST_OUTPUT#xml:}")"
  printf '<testsuites tests="%s" failures="%s">\n<testsuite name="TuttiScript">\n%s</testsuite>\n</testsuites>\n' \
    "$count" "$failures" "$cases" >"${GTEST_OUTPUT#xml:}"
fi
[[ $failures -eq 0 && $count -gt 0 ]]
