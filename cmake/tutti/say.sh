# shellcheck shell=bash
# How ./tutti speaks: to stderr, since stdout belongs to the command.

say() { printf 'tutti: %s\n' "$*" >&2; }
die() {
  say "$@"
  exit 1
}
is_terminal() { [[ -t 2 && ${TERM:-dumb} != dumb && -z ${CI:-} ]]; }
