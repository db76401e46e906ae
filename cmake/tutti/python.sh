# shellcheck shell=bash
# ./tutti python: the Python module, for the python3 at hand; and how programs find it.

# What CMake found no Python for may be there by now.
look_for_python_again() {
  if grep -q -s '^TUTTI_PYTHON_MISSING:INTERNAL=.' "$root/build/$1/CMakeCache.txt"; then
    cmake "$root/build/$1" >/dev/null 2>&1 || true
  fi
}

# Sets python to the python3 that the module is for, torch_place to where its PyTorch keeps its files for CMake, and
# its_version.
find_python() {
  local candidate
  local -a facts=()
  python=${TUTTI_PYTHON:-} torch_place= its_version=
  local ask='
import torch, torch.utils
version = torch.__version__.split("+")[0]
is_debian = torch.__file__.startswith("/usr/lib/python3/")
assert is_debian or [int(part) for part in version.split(".")[:2]] >= [2, 1], "PyTorch " + version + " is older than 2.1"
assert torch.compiled_with_cxx11_abi(), "PyTorch " + version + " is built with the old C++ ABI: take 2.6 or later"
print(torch.utils.cmake_prefix_path, version, sep="\n")'
  for candidate in ${python:-python3 /usr/bin/python3}; do
    # The words of -I keep a build environment of pip, which lacks torch, out of it.
    mapfile -t facts < <("$candidate" -I -c "$ask" 2>/dev/null)
    if [[ ${#facts[@]} -gt 0 ]]; then
      python=$candidate torch_place=${facts[0]} its_version=${facts[1]}
      return 0
    fi
  done
  [[ -z $python ]] || die "$python has no PyTorch to build for: $("$python" -I -c "$ask" 2>&1 | tail -n 1)"
  return 1
}

# Builds the module in the build of the program where that has the PyTorch of python3, else in build/python.
build_python() {
  local torch_place python_folder its_config
  if ! find_python; then
    torch_from=none ensure_packages "$python_packages"
    find_python || die "no python3 imports torch; install PyTorch (pip install torch), or set TUTTI_PYTHON"
  fi
  export TUTTI_PYTHON=$python
  case $torch_place in
    /usr/lib/python3/*)
      torch_from=none ensure_packages "$python_packages"
      unset TORCH_DIR TUTTI_BUILD
      recall_torch
      look_for_python_again "$build"
      ;;
    *)
      its_config=$(torch_config_in "$torch_place")
      [[ -n $its_config ]] || die "found no TorchConfig.cmake in $torch_place"
      recall_torch
      if [[ $torch_config != "$its_config" ]]; then
        torch_from=python torch_config=$its_config torch_version=$its_version
        recall_torch() { build=python; }
        ensure_packages "$packages"
      fi
      ;;
  esac
  build_target tutti_python
  python_folder=$folder/python
  [[ -e $python_folder/tutti/__init__.py ]] || die "the Python module was not built: see $folder/build.log"
  export PYTHONPATH=$python_folder${PYTHONPATH:+:$PYTHONPATH}
}

run_python() {
  build_python
  if [[ $# -gt 0 ]]; then exec "$python" "$@"; fi
  say "built for $("$python" -c 'import sys, torch; print(sys.executable, "with PyTorch", torch.__version__)'): export PYTHONPATH=$folder/python"
}

# Programs that `run` starts find the Python module, where it has been built for the PyTorch of their python3 and is not
# installed there.
show_python_module() {
  local python=python3 word torch other place=$folder/python
  for word in "$@"; do
    case ${word##*/} in python | python3 | python3.*) python=$word && break ;; esac
  done
  # A mere folder named tutti, as this tree may be, is found too, but without an origin. Where there is no PyTorch, the
  # program has a python3 of its own.
  torch=$("$python" -c '
import importlib.util as find
tutti = find.find_spec("tutti")
print("installed" if tutti and tutti.origin else find.find_spec("torch").origin)' 2>/dev/null) || torch=
  case $torch in
    installed) return ;;
    "" | /usr/lib/python3/*) ;;
    *)
      # In the build that was configured with its PyTorch.
      place=
      for other in "$root"/build/*/.tutti-configured; do
        [[ $(<"$other") != *" ${torch%/__init__.py}/"* ]] || place=${other%/.tutti-configured}/python
      done
      ;;
  esac
  if [[ -n $place && -e $place/tutti ]]; then export PYTHONPATH=$place${PYTHONPATH:+:$PYTHONPATH}; fi
}
