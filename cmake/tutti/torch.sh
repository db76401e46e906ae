# shellcheck shell=bash
# Which libtorch to build with, and in which folder of build/.

# Where Debian's (or a distribution's) TorchConfig.cmake lies, or nothing.
system_torch() {
  local folder
  for folder in /usr/lib/*/cmake/Torch /usr/lib/cmake/Torch /usr/share/cmake/Torch /usr/local/share/cmake/Torch; do
    if [[ -e $folder/TorchConfig.cmake ]]; then
      printf '%s' "$folder"
      return
    fi
  done
}

has_gpu() { [[ -e /dev/nvidia0 ]] || nvidia-smi -L >/dev/null 2>&1; }

# The folder with TorchConfig.cmake under a libtorch's root, its share/cmake, or that folder itself; or nothing.
torch_config_in() {
  local folder
  for folder in "$1" "$1"/share/cmake/Torch "$1"/Torch "$1"/lib/cmake/Torch "$1"/lib/*/cmake/Torch; do
    if [[ -e $folder/TorchConfig.cmake ]]; then
      (cd -P -- "$folder" && pwd)
      return
    fi
  done
}

# Is the libtorch of this TorchConfig.cmake's folder built for CUDA?
is_cuda_torch() { [[ -e $1/../../../lib/libtorch_cuda.so ]]; }

# What a python3 says of its PyTorch, in lines: none, debian, usable or unusable; its version; where its files for CMake
# are, or why it is of no use; then the folders in which it looks for packages. Seconds: it imports torch.
python_says='
import os, sys
kind, version, what = "none", "", ""
try:
    import torch, torch.utils
    version = torch.__version__.split("+")[0]
    kind, what = "usable", torch.utils.cmake_prefix_path
    if os.path.realpath(torch.__file__).startswith("/usr/lib/python3/"):
        kind = "debian"
    elif [int(part) for part in version.split(".")[:2]] < [2, 1]:
        kind, what = "unusable", "it is older than 2.1"
    elif not torch.compiled_with_cxx11_abi():
        kind, what = "unusable", "it is built with the old C++ ABI, as packages from pip were before 2.6"
except ModuleNotFoundError as error:
    if error.name != "torch":
        kind, what = "unusable", str(error)
except Exception as error:
    kind, what = "unusable", str(error)
print(kind, version, " ".join(what.split()), *sys.path, sep="\n")'

# Asks it. Sets python_kind, torch_version, and torch_config where it is usable, or why; and python_folders.
ask_python_for_torch() {
  local place
  local -a lines=()
  # Not from here: the folder in which it runs is one where it looks.
  mapfile -t lines < <(cd / && "${TUTTI_PYTHON:-python3}" -c "$python_says" 2>/dev/null)
  python_kind=${lines[0]:-none} torch_version=${lines[1]:-} place=${lines[2]:-} why=$place
  python_folders=("${lines[@]:3}")
  if [[ $python_kind == usable ]]; then
    torch_config=$(torch_config_in "$place")
    [[ -n $torch_config ]] || python_kind=unusable why="it comes without TorchConfig.cmake"
  fi
}

# Sets torch_from (debian, python, TORCH_DIR), torch_config (empty: Debian's, not installed yet), torch_version (of
# python's) and build.
choose_torch() {
  local wanted=${TUTTI_BUILD:-} python=${TUTTI_PYTHON:-python3} python_kind=none why=
  torch_from=debian torch_config= torch_version= python_folders=()
  if [[ -n ${TORCH_DIR:-} ]]; then
    torch_from=TORCH_DIR torch_config=$(torch_config_in "$TORCH_DIR")
    [[ -n $torch_config ]] || die "TORCH_DIR is $TORCH_DIR, but there is no TorchConfig.cmake in it or in its" \
      "share/cmake/Torch; set it to the root of a libtorch or a PyTorch package, or unset it"
  elif [[ -z $wanted || $wanted == cuda ]] || ! { [[ -n $(system_torch) ]] || command -v apt-get >/dev/null; }; then
    ask_python_for_torch
    case $python_kind in
      usable) torch_from=python ;;
      unusable) say "$python has PyTorch${torch_version:+ $torch_version}, but $why: building with Debian's libtorch" ;;
    esac
  fi
  if [[ $torch_from == debian ]]; then
    torch_version= torch_config=$(system_torch)
    if [[ -z $torch_config ]] && ! command -v apt-get >/dev/null; then
      die "found no libtorch; install PyTorch where python3 finds it, or set TORCH_DIR to the root of one"
    fi
  fi

  build=${wanted:-release}
  if [[ -z $wanted && $torch_from == python ]]; then
    build=$(printf '%s' "torch-$torch_version" | cut -d. -f1,2)
  fi
  local is_cuda=
  if [[ -n $torch_config ]] && is_cuda_torch "$torch_config"; then is_cuda=yes; fi
  if [[ -z $wanted && $torch_from != TORCH_DIR ]] && has_gpu; then
    if [[ -z $is_cuda ]]; then
      say "there is a GPU, but $python has no PyTorch with CUDA: building for the CPU. For the GPU, put a CUDA" \
        "PyTorch into python3's reach or set TORCH_DIR"
    elif ! has_nvcc; then
      say "there is a GPU, but no nvcc: building for the CPU. For the GPU, install the CUDA toolkit and put nvcc into" \
        "the PATH"
    else
      build=cuda
    fi
  elif [[ -z $wanted && $torch_from == TORCH_DIR && -n $is_cuda ]]; then
    build=cuda
  elif [[ $wanted == cuda && -z $is_cuda ]]; then
    die "TUTTI_BUILD=cuda needs a libtorch with CUDA: put such a PyTorch into python3's reach, or set TORCH_DIR"
  fi
}

has_nvcc() { [[ -n ${CUDACXX:-} ]] || command -v nvcc >/dev/null; }

# For messages: whose libtorch it is.
torch_name() {
  case $torch_from in
    debian) printf "Debian's libtorch" ;;
    python) printf "PyTorch %s of %s" "$torch_version" "${TUTTI_PYTHON:-python3}" ;;
    *) printf "TORCH_DIR's libtorch" ;;
  esac
}

# As choose_torch, but remembered in build/ as long as nothing that it looked at has changed.
recall_torch() {
  case ${TUTTI_BUILD:-} in
    '' | release | debug | asan | tsan | coverage | cuda) ;;
    *) die "TUTTI_BUILD is $TUTTI_BUILD; known: release, debug, asan, tsan, coverage, cuda" ;;
  esac
  local python smi folder gpu=no changed= memory=$root/build/.torch-${TUTTI_BUILD:-default}$(printf '%s' "${TUTTI_PYTHON:-}" | tr / -)
  local -a python_folders=()
  python=$(command -v "${TUTTI_PYTHON:-python3}" || true)
  smi=$(command -v nvidia-smi || true)
  [[ -e /dev/nvidia0 ]] && gpu=yes
  local key="TORCH_DIR=${TORCH_DIR:-} python=$python ${VIRTUAL_ENV:-} ${CONDA_PREFIX:-} ${PYENV_VERSION:-}"
  key+=" ${PYTHONPATH:-} nvidia=$gpu $smi"
  local remembered=
  if [[ -r $memory ]]; then
    {
      IFS= read -r remembered && IFS= read -r torch_from && IFS= read -r torch_config && IFS= read -r build &&
        IFS= read -r torch_version && mapfile -t python_folders
    } <"$memory" || remembered=
    if [[ $remembered == "$key" && -e $torch_config/TorchConfig.cmake ]]; then
      # A PyTorch that appears or vanishes changes the folder of packages that it is in.
      for folder in "$python" "${python_folders[@]}"; do
        if [[ $folder -nt $memory ]]; then changed=yes; fi
      done
      [[ -n $changed ]] || return 0
    fi
  fi
  choose_torch
  ensure_packages "$packages"
  case $build in asan | tsan) torch_from=none ensure_packages "$sanitizer_packages" ;; esac
  [[ -n $torch_config ]] || torch_config=$(system_torch)
  [[ -n $torch_config ]] || die "libtorch-dev is installed, but its TorchConfig.cmake was not found; set TORCH_DIR"
  if [[ $torch_from == debian ]] && ! has_fast_blas; then
    say "warning: libtorch will use the reference BLAS, which is many times slower. Choose another:" \
      "update-alternatives --config libblas.so.3-$(uname -m)-linux-gnu"
  fi
  make_build_folder "$root/build"
  printf '%s\n' "$key" "$torch_from" "$torch_config" "$build" "$torch_version" "${python_folders[@]}" >"$memory.$$"
  mv -f "$memory.$$" "$memory"
}
