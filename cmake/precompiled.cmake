# Headers that most files include, parsed once: about half of the time of a build is libtorch's, read again and again.
# A file must still include what it uses; ./tutti lint --recent reads each without these.

function(tutti_add_precompiled name)
  cmake_parse_arguments(ARG "" "" "HEADERS;LINK" ${ARGN})
  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp CONTENT "")
  add_library(tutti_precompiled_${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  target_link_libraries(tutti_precompiled_${name} PRIVATE ${ARG_LINK} tutti_fmt nlohmann_json::nlohmann_json tutti_warnings)
  target_precompile_headers(tutti_precompiled_${name} PRIVATE ${ARG_HEADERS}
    <algorithm> <chrono> <functional> <map> <memory> <mutex> <string> <thread> <vector> <fmt/format.h> <nlohmann/json.hpp>)
endfunction()

tutti_add_precompiled(plain)
tutti_add_precompiled(light)
tutti_add_precompiled(torch HEADERS <torch/nn/module.h> <torch/types.h> LINK tutti_torch)
if(TUTTI_TESTS)
  tutti_add_precompiled(tests HEADERS <gmock/gmock.h> <gtest/gtest.h> LINK GTest::gmock)
  tutti_add_precompiled(torch_tests HEADERS <torch/nn/module.h> <torch/types.h> <gmock/gmock.h> <gtest/gtest.h> LINK tutti_torch GTest::gmock)
endif()
# For what computes little: less than half of -O3's time, and three quarters of -O1's. GCC warns of as much. Other builds have
# less than -O3 already.
set(tutti_quick_options $<$<CONFIG:Release>:-Og>)
# What is tested keeps its own. Clang with the sanitizers takes a third of -O1's time, and warns of as much; GCC's warnings
# need more than -O0.
set(tutti_test_options ${tutti_quick_options})
if(TUTTI_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(tutti_test_options -O0)
endif()
# As its users are: GCC wants the same options.
target_compile_options(tutti_precompiled_light PRIVATE ${tutti_quick_options})
foreach(kind tests torch_tests)
  if(TARGET tutti_precompiled_${kind})
    target_compile_options(tutti_precompiled_${kind} PRIVATE ${tutti_test_options})
  endif()
endforeach()

# Is libtorch, or a library of ours whose users include it, among these?
function(tutti_have_torch result)
  set(found FALSE)
  foreach(library ${ARGN})
    if(library STREQUAL "tutti_torch")
      set(found TRUE)
    elseif(TARGET ${library})
      get_target_property(passes_on ${library} TUTTI_PASSES_TORCH_ON)
      if(passes_on)
        set(found TRUE)
      endif()
    endif()
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

# tutti_precompile(engine_tests tests tutti::engine): the given kind, plain, light or tests, with libtorch's headers where a
# library linked has them.
function(tutti_precompile target kind)
  tutti_have_torch(with_torch ${ARGN})
  if(kind STREQUAL "tests")
    target_compile_options(${target} PRIVATE ${tutti_test_options})
    if(with_torch)
      set(kind torch_tests)
    endif()
  elseif(kind STREQUAL "light")
    target_compile_options(${target} PRIVATE ${tutti_quick_options})
  elseif(with_torch)
    set(kind torch)
  endif()
  target_precompile_headers(${target} REUSE_FROM tutti_precompiled_${kind})
endfunction()
