# tutti_torch: the libtorch that CMAKE_PREFIX_PATH or Torch_DIR leads to (the ./tutti script picks one).
# Its own files look for the rest of it, and would take Debian's where that is installed as well.
if(Torch_DIR)
  get_filename_component(tutti_torch_prefix "${Torch_DIR}/../../.." ABSOLUTE)
  list(PREPEND CMAKE_PREFIX_PATH ${tutti_torch_prefix})
endif()
if(NOT TUTTI_CUDA AND tutti_torch_prefix AND EXISTS ${tutti_torch_prefix}/lib/libtorch_cuda.so)
  # A PyTorch for CUDA describes itself only where the CUDA toolkit is. Of it a CPU needs headers and two libraries.
  set(TORCH_INSTALL_PREFIX ${tutti_torch_prefix})
  set(TORCH_INCLUDE_DIRS ${tutti_torch_prefix}/include ${tutti_torch_prefix}/include/torch/csrc/api/include)
  set(TORCH_LIBRARIES ${tutti_torch_prefix}/lib/libtorch_cpu.so ${tutti_torch_prefix}/lib/libc10.so)
  file(STRINGS ${Torch_DIR}/TorchConfig.cmake tutti_abi REGEX "_GLIBCXX_USE_CXX11_ABI=[01]")
  string(REGEX MATCH "-D_GLIBCXX_USE_CXX11_ABI=[01]" TORCH_CXX_FLAGS "${tutti_abi}")
  include(${Torch_DIR}/TorchConfigVersion.cmake)
  set(Torch_VERSION ${PACKAGE_VERSION})
else()
  # It adds to CMAKE_CUDA_FLAGS: machine code for GPUs that nvcc may no longer know, and options for its own headers.
  set(tutti_cuda_flags "${CMAKE_CUDA_FLAGS}")
  find_package(Torch REQUIRED)
  set(CMAKE_CUDA_FLAGS "${tutti_cuda_flags}")
endif()
# The newest ones want C++20. They say so in a header, and nowhere that CMake would see.
foreach(folder ${TORCH_INCLUDE_DIRS})
  if(EXISTS ${folder}/ATen/ATen.h)
    file(STRINGS ${folder}/ATen/ATen.h wants_20 REGEX "error.*C\\+\\+20")
    if(wants_20)
      set(CMAKE_CXX_STANDARD 20)
      # In which GCC 12 takes every "text" + string for an overflow.
      if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        foreach(warning restrict stringop-overflow array-bounds)
          add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-${warning}>)
        endforeach()
      endif()
    endif()
  endif()
endforeach()
add_library(tutti_torch INTERFACE)
target_link_libraries(tutti_torch INTERFACE ${TORCH_LIBRARIES})
target_include_directories(tutti_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
separate_arguments(tutti_torch_flags NATIVE_COMMAND "${TORCH_CXX_FLAGS}")
target_compile_options(tutti_torch INTERFACE ${tutti_torch_flags})
if("${tutti_torch_flags}" MATCHES "_GLIBCXX_USE_CXX11_ABI=0")
  message(FATAL_ERROR "The PyTorch of ${Torch_DIR} has the old C++ ABI, as packages from pip were before 2.6, and the system's "
    "libraries have the new one. Take PyTorch 2.6 or later, or Debian's libtorch.")
endif()
# libtorch is built without assertions, and some of its classes (at::RecordFunction) are laid out differently with them.
target_compile_definitions(tutti_torch INTERFACE NDEBUG)
if(TUTTI_CUDA)
  target_compile_definitions(tutti_torch INTERFACE TUTTI_CUDA=1)
endif()

# PyTorch 2 ships the headers of an fmt of its own, which hide the system's. Header-only, each file is at peace with the
# version that it sees.
add_library(tutti_fmt INTERFACE)
target_link_libraries(tutti_fmt INTERFACE fmt::fmt)
foreach(folder ${TORCH_INCLUDE_DIRS})
  if(EXISTS ${folder}/fmt/format.h AND NOT folder STREQUAL "/usr/include")
    target_compile_definitions(tutti_fmt INTERFACE FMT_HEADER_ONLY=1)
  endif()
endforeach()

# GCC 13 sees out-of-bounds accesses in libtorch's headers that are not there.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  target_compile_options(tutti_torch INTERFACE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
endif()
# Instrumented, GCC 12 takes c10::optional's empty storage for something that is read; release builds warn all the same.
if(TUTTI_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(tutti_torch INTERFACE -Wno-maybe-uninitialized)
endif()
