# shellcheck shell=bash
# ./tutti doxygen: the public headers as pages.

run_doxygen() {
  torch_from=none ensure_packages "$doxygen_packages"
  mkdir -p "$root/build/doxygen"
  (cd "$root" && doxygen cmake/Doxyfile) || die "doxygen failed"
  # Members may go without a description where their name says it.
  if grep -v -E ': warning: Member .* is not documented\.$' "$root/build/doxygen/warnings.txt" >&2; then
    die "these are missing or wrong"
  fi
  say "see build/doxygen/html/index.html"
}
