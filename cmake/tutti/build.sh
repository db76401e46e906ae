# shellcheck shell=bash
# Configures a folder of build/ and builds in it: one build at a time, and none where nothing has changed.

# Makes a folder that builds go to.
make_build_folder() {
  { mkdir -p "$1" && [[ -w $1 ]]; } 2>/dev/null && return
  die "cannot write to $1, where builds go: the disk is read-only, or the tree is somebody else's. Make it writable," \
    "or take a copy of the tree: cp -r $root somewhere, and run that one's ./tutti"
}

# As many compilers as there are cores, and no more than memory carries: one that includes libtorch takes up to 2 GB.
build_jobs() {
  local cores kilobytes limit jobs
  cores=$(nproc 2>/dev/null || echo 1)
  kilobytes=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo 2>/dev/null || true)
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || true)
  kilobytes=${kilobytes:-2097152}
  if [[ $limit =~ ^[0-9]+$ && $((limit / 1024)) -lt $kilobytes ]]; then kilobytes=$((limit / 1024)); fi
  jobs=$((kilobytes / 2097152))
  [[ $jobs -lt $cores ]] || jobs=$cores
  [[ $jobs -ge 1 ]] || jobs=1
  printf '%s' "$jobs"
}

# Reads ninja's output; shows a moving line on a terminal, else a line at the start and at each quarter. Steps that run
# every time (the commit's name, the list of test files) are no news.
show_progress() {
  local line shown=-1 quarter
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\ (Building|Linking) ]] || continue
    if is_terminal; then
      printf '\r\033[Kbuilding: %s/%s' "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" >&2
      shown=0
    else
      quarter=$((BASH_REMATCH[1] * 4 / BASH_REMATCH[2]))
      [[ $quarter -gt $shown ]] || continue
      shown=$quarter
      say "building: ${BASH_REMATCH[1]}/${BASH_REMATCH[2]}"
    fi
  done
  if is_terminal && [[ $shown -ge 0 ]]; then printf '\r\033[K' >&2; fi
}

build_failed() {
  local log=$folder/build.log
  # The next run looks for missing packages again: one may have been removed.
  rm -f "$root"/build/.torch-*
  # From the first error on, if there is one; else the end.
  local from
  from=$(grep -n -m1 -E '^FAILED:|error:|CMake Error' "$log" | cut -d: -f1 || true)
  tail -n "+${from:-1}" "$log" | { if [[ -n $from ]]; then head -n 40; else tail -n 40; fi; } >&2 || true
  die "$1; all of its output is in $log"
}

# One build at a time in a folder; the lock is let go before the command runs.
lock_build() {
  make_build_folder "$folder"
  exec 9>>"$folder/.lock"
  if command -v flock >/dev/null && ! flock -n 9; then
    say "waiting for another build in build/$build to finish"
    flock 9
  fi
}
unlock_build() { exec 9>&-; }

configuration() { printf '%s' "$build $torch_config $root"; }

configure() {
  local cuda=OFF preset=$build stamp=$folder/.tutti-configured
  [[ $build == torch-* ]] && preset=release
  [[ $build == cuda ]] && cuda=ON
  if [[ $build == python ]] && is_cuda_torch "$torch_config" && has_gpu && has_nvcc; then cuda=ON; fi
  if [[ -e $folder/build.ninja && -r $stamp && $(<"$stamp") == "$(configuration)" ]]; then return; fi
  # Another libtorch, or a moved checkout: CMake's cache still names the old one.
  rm -rf "$folder/CMakeCache.txt" "$folder/CMakeFiles" "$stamp"
  say "configuring build/$build with $(torch_name) ($torch_config)"
  if ! (cd "$root" && cmake --preset "$preset" -B "$folder" -DTorch_DIR="$torch_config" -DTUTTI_CUDA=$cuda) >"$folder/build.log" 2>&1; then
    build_failed "configuring failed"
  fi
  configuration >"$stamp"
}

# Has nothing changed since the binary was last brought up to date? Asks for any change at all, of a name or a
# permission too, in the tree, its commit or libtorch: milliseconds, where Ninja looks at every header of libtorch.
is_up_to_date() {
  local stamp=$folder/.tutti-built git=$root/.git configured=$folder/.tutti-configured
  [[ -x $folder/tutti && -e $stamp && -r $configured && $(<"$configured") == "$(configuration)" ]] || return 1
  # In a second work tree of a repository .git is a file that names the place.
  if [[ -f $git ]]; then read -r _ git <"$git"; fi
  local -a places=("$root" "$torch_config")
  local place
  for place in "$git/HEAD" "$git/logs/HEAD" "$git/index"; do [[ -e $place ]] && places+=("$place"); done
  [[ -z $(find "${places[@]}" \( -path "$root/build*" -o -path "$root/runs" -o -path "$root/.git" \) -prune -o \
    ! -path "$root" -cnewer "$stamp" -print -quit) ]]
}

# Builds targets of the chosen build, or everything (all).
build_target() {
  recall_torch
  folder=$root/build/$build
  if [[ $1 == tutti ]] && is_up_to_date; then return; fi
  lock_build
  configure
  local start=$SECONDS log=$folder/build.log
  : >"$folder/.tutti-built.new" # dated before the build, so that what changes during it counts as changed
  # shellcheck disable=SC2086 # several targets are several words
  if ! NINJA_STATUS='[%f/%t] ' ninja -C "$folder" -j "$(build_jobs)" $1 2>&1 | tee "$log.new" | show_progress; then
    mv -f "$log.new" "$log"
    build_failed "building failed"
  fi
  # The log stays that of the last build that had something to do.
  if grep -q -E '^\[[0-9/]+\] (Building|Linking)' "$log.new"; then mv -f "$log.new" "$log"; fi
  mv -f "$folder/.tutti-built.new" "$folder/.tutti-built"
  if [[ $((SECONDS - start)) -ge 2 ]]; then say "built build/$build with $(torch_name) in $((SECONDS - start)) s"; fi
  unlock_build
}
