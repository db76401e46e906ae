# shellcheck shell=bash
# ./tutti lint: how the code is laid out, and what clang-tidy and the compiler say of it.

# Does the format of all sources follow .clang-format?
check_format() {
  local -a sources=()
  local file deviations
  while IFS= read -r -d '' file; do
    [[ -e $root/$file ]] && sources+=("$file")
  done < <(cd "$root" && {
    git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cpp' '*.cu' 2>/dev/null ||
      find include src tests bench \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' \) -print0
  })
  [[ ${#sources[@]} -gt 0 ]] || die "found no sources to check"
  # One line per file, at its first deviation, is enough: clang-format -i mends them all.
  deviations=$(cd "$root" && clang-format --dry-run -Werror "${sources[@]}" 2>&1 |
    awk -F: '/: (error|warning): / && !seen[$1]++ { print $1 ":" $2 ": not laid out as .clang-format says" }') || true
  if [[ -n $deviations ]]; then
    printf '%s\n' "$deviations" >&2
    say "format: these files are not in order; clang-format -i FILE… mends them"
    return 1
  fi
  say "format: ${#sources[@]} files are in order"
}

# read_sources BUILD FOLDERS [CHANGED]: lets BUILD, in which cmake/lint_compiler reads files instead of compiling them, read
# those of these folders (a regular expression), or only those of a list, a path per line.
read_sources() {
  build=$1
  folder=$root/build/$build
  mkdir -p "$folder"
  lock_build
  configure
  ninja -C "$folder" build.ninja >"$folder/build.log" 2>&1 || build_failed "configuring failed"
  # CMake lists how each file is compiled, one line "command" and one "file" each.
  local -a units=()
  local unit status=0
  while IFS= read -r unit; do units+=("$unit"); done < <(awk -v folders="$2" -v changed="${3:-}" -v root="$root/" '
    BEGIN { count = split(changed, paths, "\n"); for (i = 1; i <= count; ++i) wanted[root paths[i]] = 1 }
    /^ *"command":/ { object = match($0, / -o [^ ]+\.o /) ? substr($0, RSTART + 4, RLENGTH - 5) : "" }
    /^ *"file":/ {
      file = $0; sub(/^ *"file": *"/, "", file); sub(/",? *$/, "", file)
      if (object ~ "^(" folders ")/" && (!count || file in wanted)) print object
    }' "$folder/compile_commands.json")
  if [[ ${#units[@]} -gt 0 ]]; then
    # What is in order says nothing; the rest is shown without the commands that found it.
    ninja -C "$folder" -k 0 -j "$(build_jobs)" "${units[@]}" >"$folder/build.log" 2>&1 || status=1
    if [[ $status -ne 0 ]]; then grep -v -E '^(\[[0-9]+/[0-9]+\]|ninja: |FAILED: |.*/lint_compiler )' "$folder/build.log" >&2 || true; fi
  fi
  unlock_build
  return $status
}

run_lint() {
  local what=src status=0 recent=
  case ${1:-} in
    '' | --recent) ;;
    --all) what='src|tests|bench' ;;
    *) die "lint knows --recent and --all, not $1" ;;
  esac
  torch_from=none ensure_packages "$lint_packages"
  recall_torch
  if [[ ${1:-} == --recent ]]; then
    # A copy without that many commits, or without git, is read whole.
    if recent=$(cd "$root" && git diff --name-only HEAD~10 -- 'src/*.cpp' 2>/dev/null); then
      [[ -n $recent ]] || { say "alone: nothing to read in the last ten commits" && return; }
    fi
    read_sources alone src "$recent" || { say "alone: a file must include what it uses, see above" && return 1; }
    say "alone: sources of the last ten commits are in order"
    return
  fi
  check_format || status=1
  if read_sources lint "$what"; then say "clang-tidy: all of ${what//|/, } is in order"; else
    say "clang-tidy: see above"
    status=1
  fi
  return $status
}
