#!/usr/bin/env bash
# The tests of the Python module once more, with the PyTorch of another python3: TUTTI_PYTHON names it, and the module is
# built for it first, which takes minutes the first time. Its sums differ from the C++ reference's in bits: no same_bits.
set -uo pipefail
here=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
skip() {
  echo "SKIPPED: $1"
  exit 0
}
[[ -n ${TUTTI_PYTHON:-} ]] || skip "TUTTI_PYTHON names no python3 with a PyTorch from pip"
place=$("$TUTTI_PYTHON" -I -c 'import torch; print(torch.__file__)' 2>/dev/null) || skip "$TUTTI_PYTHON cannot import torch"
[[ $place != /usr/lib/python3/* ]] || skip "the PyTorch of $TUTTI_PYTHON is Debian's, with which the other tests run"
status=0
for name in habits misuse records; do
  "$here/../../tutti" python "$here/${name}_test.py" || status=1
done
exit $status
