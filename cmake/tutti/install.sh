# shellcheck shell=bash
# ./tutti install and ./tutti package: the program for this machine, or for a package manager.

run_install() {
  local prefix=$HOME/.local log
  [[ ${EUID:-$(id -u)} != 0 ]] || prefix=/usr/local
  case ${1:-} in
    '') ;;
    --prefix) prefix=${2:-} ;;
    --prefix=*) prefix=${1#--prefix=} ;;
    *) die "install knows --prefix DIR, not $1" ;;
  esac
  [[ -n $prefix ]] || die "--prefix: which folder?"
  prefix=$(realpath -m -- "$prefix")
  build_target tutti
  log=$folder/install.log
  cmake --install "$folder" --component program --prefix "$prefix" --strip >"$log" 2>&1 || {
    tail -n 5 "$log" >&2
    die "it could not be installed in $prefix; all of its output is in $log"
  }
  say "installed: $prefix/bin/tutti. To remove it: xargs rm -f <$folder/install_manifest_program.txt"
  case :$PATH: in *":$prefix/bin:"*) ;; *) say "$prefix/bin is not in PATH: add it" ;; esac
}

run_package() {
  local log package
  torch_from=none ensure_packages "$package_packages"
  recall_torch
  [[ $torch_from == debian ]] || die "a Debian package needs Debian's libtorch, and this build has $torch_config: unset TORCH_DIR, or set TUTTI_BUILD=release"
  build_target tutti
  log=$folder/package.log
  rm -f "$folder"/tutti_*.deb
  (cd "$folder" && cpack -G DEB) >"$log" 2>&1 || {
    tail -n 5 "$log" >&2
    die "the package could not be made; all of its output is in $log"
  }
  for package in "$folder"/tutti_*.deb; do printf '%s\n' "$package"; done
}
