# shellcheck shell=bash
# Debian's packages: which of those that a command needs are missing, and how they are installed.

# Debian package | how to see that it, or its like from elsewhere, is here | what for.
# A check is program:NAME, header:PATH, file:PATH, package:NAME, torch or blas; the last two matter only with Debian's own libtorch.
packages='
cmake                | program:cmake             | configures the build
ninja-build          | program:ninja             | builds only what changed, quickly
g++                  | program:c++               | compiles C++17
libtorch-dev         | torch                     | tensors, autograd, neural network layers
libopenblas0-pthread | blas                      | fast matrix products; without it libtorch uses the slow reference BLAS
libcli11-dev         | header:CLI/CLI.hpp        | command-line options
nlohmann-json3-dev   | header:nlohmann/json.hpp  | records and plans as JSON
libfmt-dev           | header:fmt/format.h       | text formatting
libssl-dev           | header:openssl/evp.h      | SHA-256 of checkpoints and data
zlib1g-dev           | header:zlib.h             | compressed datasets
libpng-dev           | header:png.h              | optional: pictures
libjpeg-dev          | header:jpeglib.h          | optional: pictures
libyaml-cpp-dev      | header:yaml-cpp/yaml.h    | optional: recipes, sweeps, clusters
curl                 | program:curl              | optional: tutti data get
iproute2             | program:ip                | optional: tutti cluster
gnuplot-nox          | program:gnuplot           | optional: figures
libcpp-httplib-dev   | header:httplib.h          | optional: tutti watch
libjs-chart.js       | file:/usr/share/javascript/chart.js/chart.min.js | optional: curves on pages
openmpi-bin          | program:mpirun            | optional: starts ranks on several machines
libopenmpi-dev       | program:mpicxx            | optional: the mpi transport
libgtest-dev         | header:gtest/gtest.h      | the tests
'
# Clang takes half the time of GCC with the sanitizers on, and sees other mistakes.
sanitizer_packages='
clang                | program:clang++           | compiles with the sanitizers
llvm                 | program:llvm-symbolizer   | names the functions in their reports
'
# What some tests try Tutti with; they are skipped without these, and those of Slurm need root too.
test_packages='
munge                | program:munged            | optional: lets the parts of Slurm trust each other
slurm-wlm            | program:slurmctld         | optional: jobs as on a cluster
chromium             | program:chromium          | optional: opens the pages of reports
python3              | program:python3           | optional: the storm of tests/storm
pybind11-dev         | package:pybind11-dev      | optional: the Python module
python3-torch        | package:python3-torch     | optional: PyTorch programs under the Python module
python3-setuptools   | package:python3-setuptools | optional: the installation of the Python module
'
# For `python`, where no python3 has a PyTorch.
python_packages='
pybind11-dev         | package:pybind11-dev      | binds C++ to Python
python3-dev          | package:python3-dev       | the headers of python3
python3-torch        | package:python3-torch     | PyTorch, with the library of libtorch-dev
'
# For `package`.
package_packages='
dpkg-dev             | program:dpkg-shlibdeps    | finds the packages that the program needs
'
lint_packages='
clang-format         | program:clang-format      | checks how the code is laid out
clang-tidy           | program:clang-tidy        | checks names and common mistakes
'
doxygen_packages='
doxygen              | program:doxygen           | makes pages of the public headers
'

trim() {
  local text=$1
  text=${text#"${text%%[![:space:]]*}"}
  printf '%s' "${text%"${text##*[![:space:]]}"}"
}

find_header() {
  local folder
  local -a prefixes=() folders=()
  IFS=: read -r -a prefixes <<<"${CMAKE_PREFIX_PATH:-}"
  IFS=: read -r -a folders <<<"${CPATH:-}:${CPLUS_INCLUDE_PATH:-}"
  for folder in "${folders[@]}" "${prefixes[@]/%//include}" /usr/include /usr/local/include /usr/include/*-linux-gnu; do
    [[ -n $folder && -e $folder/$1 ]] && return 0
  done
  return 1
}

# Does the BLAS that libtorch will load do better than the reference one?
has_fast_blas() {
  local library
  for library in /usr/lib/*/libblas.so.3 /usr/lib/libblas.so.3; do
    [[ -e $library ]] || continue
    case $(readlink -f -- "$library") in *openblas* | *mkl* | *blis* | *atlas*) return 0 ;; esac
  done
  return 1
}

is_present() {
  case $1 in
    program:*) command -v "${1#program:}" >/dev/null ;;
    header:*) find_header "${1#header:}" ;;
    file:*) [[ -e ${1#file:} ]] ;;
    package:*) is_installed "${1#package:}" ;;
    torch) [[ $torch_from != debian || -n $(system_torch) ]] ;;
    blas) [[ $torch_from != debian ]] || has_fast_blas ;;
  esac
}

is_installed() {
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null || true) == installed ]]
}

# Installs what is missing of a table of packages. Where that cannot be done, says how to and exits, or goes on if the
# build can do without.
ensure_packages() {
  local package check reason
  local -a missing=()
  local text= is_required=
  while IFS='|' read -r package check reason; do
    package=$(trim "$package") check=$(trim "$check") reason=$(trim "$reason")
    [[ -n $package ]] || continue
    is_present "$check" && continue
    # Installed all the same: a library in a place not looked at (CMake will find it), or an alternative set by hand.
    is_installed "$package" && continue
    missing+=("$package")
    [[ $reason == optional:* ]] || is_required=yes
    text+=$(printf '  %-21s %s' "$package" "$reason")$'\n'
  done <<<"$1"
  [[ ${#missing[@]} -gt 0 ]] || return 0

  say "missing packages: ${#missing[@]}"
  printf '%s' "$text" >&2
  give_up() {
    [[ -z $is_required ]] || die "$@"
    say "$@"
    say "going on without what is optional"
  }
  local -a install=(apt-get install -y --no-install-recommends "${missing[@]}")
  local by_hand="apt-get update && ${install[*]}"
  [[ ${EUID:-$(id -u)} == 0 ]] || by_hand="sudo apt-get update && sudo ${install[*]}"
  if ! command -v apt-get >/dev/null; then
    give_up "this system has no apt-get; install the like of them its own way, then run this again"
    return
  fi
  if [[ -n ${TUTTI_NO_INSTALL:-} ]]; then
    give_up "TUTTI_NO_INSTALL is set, so nothing was installed; run: $by_hand"
    return
  fi

  local -a as_root=(env DEBIAN_FRONTEND=noninteractive)
  if [[ ${EUID:-$(id -u)} != 0 ]]; then
    if ! command -v sudo >/dev/null; then
      give_up "installing needs root, and there is no sudo; run as root: apt-get update && ${install[*]}"
      return
    fi
    if [[ -t 0 && -t 2 ]]; then
      local answer
      read -r -p "tutti: install them with sudo apt-get? [Y/n] " answer >&2
      case $answer in '' | [yY]*) ;; *) give_up "nothing was installed; run: $by_hand" && return ;; esac
      sudo -v || { give_up "sudo refused; run: $by_hand" && return; }
      as_root=(sudo "${as_root[@]}")
    elif sudo -n true 2>/dev/null; then
      as_root=(sudo -n "${as_root[@]}")
    else
      give_up "installing needs a password; run: $by_hand"
      return
    fi
  fi

  make_build_folder "$root/build"
  local log=$root/build/install.log
  local size is_updated=
  local -a apt=("${as_root[@]}" apt-get -o DPkg::Lock::Timeout=600)
  : >"$log"
  # Package lists that were never fetched, or that lack a package, are fetched first; stale ones after a failure.
  if ! LC_ALL=C apt-get install -s --no-install-recommends "${missing[@]}" >>"$log" 2>&1; then
    say "fetching the package lists"
    "${apt[@]}" update >>"$log" 2>&1 || say "apt-get update failed, see $log; trying to install all the same"
    is_updated=yes
  fi
  size=$(LC_ALL=C apt-get install --assume-no --no-install-recommends "${missing[@]}" 2>/dev/null |
    sed -n 's/^Need to get \(.*\) of archives\.$/\1 to fetch/p; s/^After this operation, \(.*\) of additional disk space will be used\.$/\1 on disk/p' |
    paste -sd, - | sed 's/,\([^ ]* [kMG]*B on\)/, \1/' || true)
  say "installing them${size:+ and what they need ($size)}"
  if ! "${apt[@]}" "${install[@]:1}" >>"$log" 2>&1; then
    if [[ -n $is_updated ]] || ! { "${apt[@]}" update && "${apt[@]}" "${install[@]:1}"; } >>"$log" 2>&1; then
      tail -n 15 "$log" >&2
      give_up "the packages could not be installed; all of apt-get's output is in $log"
      return
    fi
  fi
  hash -r
}
