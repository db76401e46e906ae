# One target per folder of src/, one test program per folder of tests/. A target states its own needs; nothing is global.

add_library(tutti_warnings INTERFACE)
target_compile_options(tutti_warnings INTERFACE -Wall -Wextra -Werror)
# The libraries also go into shared objects: the Python module, and programs and plug-ins of others. Everything is compiled
# alike, programs too, because precompiled headers want the same options. Nobody replaces our functions: calls stay direct.
target_compile_options(tutti_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fPIC -fno-semantic-interposition>)
# GCC looks for memory to reuse each time that it has doubled, which for files of half a gigabyte is a tenth of its time. So it
# does not begin before (kilobytes); the largest files then take 1.4 GB, with PyTorch 2.11 1.8, and ./tutti counts on 2.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(tutti_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=524288>)
endif()
if(TUTTI_SANITIZE)
  target_compile_options(tutti_warnings INTERFACE -fsanitize=${TUTTI_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_link_options(tutti_warnings INTERFACE -fsanitize=${TUTTI_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")  # GCC says by itself which one it builds with
    string(REGEX REPLACE ",.*" "" sanitizer "${TUTTI_SANITIZE}")
    string(TOUPPER "${sanitizer}" sanitizer)
    target_compile_definitions(tutti_warnings INTERFACE __SANITIZE_${sanitizer}__=1)
  endif()
endif()

# tutti_add_library(base SOURCES a.cpp b.cpp PUBLIC lib… PRIVATE lib…): the library tutti::base.
function(tutti_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(tutti_${name} STATIC ${ARG_SOURCES})
  add_library(tutti::${name} ALIAS tutti_${name})
  target_include_directories(tutti_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(tutti_${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE} tutti_warnings)
  set(kind plain)
  if(name IN_LIST TUTTI_LIGHT_LIBRARIES)
    set(kind light)
  endif()
  tutti_precompile(tutti_${name} ${kind} ${ARG_PUBLIC} ${ARG_PRIVATE})
  # Several files in one go, so that their headers are read once. Names without a home (anonymous namespaces) then share one.
  if(TUTTI_UNITY)
    set_target_properties(tutti_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  endif()
  set_property(GLOBAL APPEND PROPERTY TUTTI_LIBRARIES tutti_${name})
  tutti_have_torch(passes_on ${ARG_PUBLIC})
  set_target_properties(tutti_${name} PROPERTIES TUTTI_PASSES_TORCH_ON ${passes_on})
endfunction()

# Writes layers.txt, which folder of src/ links which, for check_layers.awk.
function(tutti_write_layers)
  get_property(targets GLOBAL PROPERTY TUTTI_LIBRARIES)
  set(text "")
  foreach(target ${targets} tutti)
    get_target_property(folder ${target} SOURCE_DIR)
    get_filename_component(folder ${folder} NAME)
    string(APPEND text "${folder} SELF ${folder}\n")
    get_target_property(links ${target} LINK_LIBRARIES)
    get_target_property(public ${target} INTERFACE_LINK_LIBRARIES)
    foreach(link ${links})
      if(link MATCHES "^tutti::")
        get_target_property(to ${link} SOURCE_DIR)
        get_filename_component(to ${to} NAME)
        set(kind PRIVATE)
        if(link IN_LIST public)
          set(kind PUBLIC)
        endif()
        string(APPEND text "${folder} ${kind} ${to}\n")
      endif()
    endforeach()
  endforeach()
  file(WRITE ${PROJECT_BINARY_DIR}/layers.txt "${text}")
endfunction()

# tutti_add_test(plan_test plan_test.cpp LINK tutti::plan): a file of tests, one ctest entry. The files of a folder make
# one program, FOLDER_tests: headers are read and libraries linked once. To give it more:
# target_compile_definitions(plan_tests PRIVATE …), add_dependencies(plan_tests …), after the first file.
#   ALONE             a program of its own, called as the test: where cases come from a header
#   OPTIMIZED         as libraries are: it has loops of its own over much data
#   TIMEOUT 600       seconds, where 300 may be too few
#   WITHOUT quick     less than the labels of the folder, TUTTI_TEST_LABELS; tests/CMakeLists.txt says which there are
function(tutti_add_test name source)
  cmake_parse_arguments(ARG "ALONE;OPTIMIZED" "TIMEOUT" "LINK;WITHOUT" ${ARGN})
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  if(ARG_ALONE)
    set(program ${name})
    set(cases "")
  else()
    set(program ${folder}_tests)
    set(cases ${source})
  endif()
  if(NOT TARGET ${program})
    add_executable(${program})
    target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    tutti_link_quickly(${program})
    if(TUTTI_UNITY)
      set_target_properties(${program} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
    endif()
    get_property(programs DIRECTORY PROPERTY TUTTI_TEST_PROGRAMS)
    if(NOT programs)
      cmake_language(DEFER CALL tutti_finish_test_programs)  # when all of the folder's files are known
    endif()
    set_property(DIRECTORY APPEND PROPERTY TUTTI_TEST_PROGRAMS ${program})
  endif()
  target_sources(${program} PRIVATE ${source})
  target_link_libraries(${program} PRIVATE ${ARG_LINK})
  if(ARG_OPTIMIZED)
    set_target_properties(${program} PROPERTIES TUTTI_PRECOMPILED plain)
  endif()
  add_test(NAME ${name} COMMAND ${program} ${cases})
  tutti_set_test_up(${name} "${ARG_TIMEOUT}")
  set(labels ${TUTTI_TEST_LABELS})
  if(folder IN_LIST TUTTI_RACE_FOLDERS)
    list(APPEND labels race)
  endif()
  if(ARG_WITHOUT)
    list(REMOVE_ITEM labels ${ARG_WITHOUT})
  endif()
  tutti_label_test(${name} ${program} ${labels})
  set_property(GLOBAL APPEND PROPERTY TUTTI_TEST_SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/${source})
endfunction()

function(tutti_finish_test_programs)
  get_property(programs DIRECTORY PROPERTY TUTTI_TEST_PROGRAMS)
  foreach(program ${programs})
    get_target_property(libraries ${program} LINK_LIBRARIES)
    target_link_libraries(${program} PRIVATE tutti::test_main GTest::gmock GTest::gtest Threads::Threads tutti_warnings)
    get_target_property(kind ${program} TUTTI_PRECOMPILED)
    if(NOT kind)
      set(kind tests)
    endif()
    tutti_precompile(${program} ${kind} ${libraries})
  endforeach()
endfunction()

# tutti_label_test(idx_fuzz fuzz quick memory): the test idx_fuzz, run by the program fuzz, has these labels. The targets
# all_tests, quick_tests, … build the programs of all tests, and of those with a label.
add_custom_target(all_tests)
function(tutti_label_test name program)
  set_property(TEST ${name} PROPERTY LABELS ${ARGN})
  foreach(kind all ${ARGN})
    if(NOT TARGET ${kind}_tests)
      add_custom_target(${kind}_tests)
    endif()
    add_dependencies(${kind}_tests ${program})
  endforeach()
endfunction()

# gold links a test program in a seventh of the time. For what only tests run.
include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=gold TUTTI_HAS_GOLD)
function(tutti_link_quickly name)
  if(TUTTI_HAS_GOLD AND NOT TUTTI_CUDA)
    target_link_options(${name} PRIVATE -fuse-ld=gold)
  endif()
endfunction()

# A test that this build leaves out on purpose; tutti_check_tests() then does not miss it.
function(tutti_leave_test_out source)
  set_property(GLOBAL APPEND PROPERTY TUTTI_TEST_SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/${source})
endfunction()

# tutti_add_script_test(tutti_script run.sh TIMEOUT 60): a test that is a script. One that writes GoogleTest's kind of
# report to the file after "xml:" in $GTEST_OUTPUT is counted case by case.
function(tutti_add_script_test name script)
  cmake_parse_arguments(ARG "" "TIMEOUT" "" ${ARGN})
  add_test(NAME ${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/${script})
  tutti_set_test_up(${name} "${ARG_TIMEOUT}")
endfunction()

# The time limit, where the report goes, and what the sanitizers are told. To add to a test's environment, append:
# set_property(TEST name APPEND PROPERTY ENVIRONMENT …).
function(tutti_set_test_up name timeout)
  if(NOT timeout)
    set(timeout 300)
  endif()
  set(options "GTEST_OUTPUT=xml:${PROJECT_BINARY_DIR}/test-results/${name}.xml")
  set(suppressions ${PROJECT_SOURCE_DIR}/cmake/sanitizers)
  if(TUTTI_SANITIZE MATCHES "address")
    math(EXPR timeout "${timeout} * 4")
    # Vectors that libtorch, built without the sanitizer, has grown look overrun to code built with it.
    list(APPEND options "ASAN_OPTIONS=detect_container_overflow=0:detect_stack_use_after_return=1:strict_string_checks=1"
      "LSAN_OPTIONS=suppressions='${suppressions}/leak.txt':print_suppressions=0"
      "UBSAN_OPTIONS=print_stacktrace=1")
  elseif(TUTTI_SANITIZE MATCHES "thread")
    math(EXPR timeout "${timeout} * 4")
    list(APPEND options "TSAN_OPTIONS=suppressions='${suppressions}/thread.txt':die_after_fork=0:second_deadlock_stack=1"
      "OMP_NUM_THREADS=1")
  endif()
  # Those that may take longest start first, so that none is left to run alone at the end.
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} COST ${timeout} ENVIRONMENT "${options}")
endfunction()

# For a test that uses mpirun: more processes than cores, and root, are fine.
function(tutti_allow_mpirun name)
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_mpi_yield_when_idle=1
    OMPI_MCA_btl_base_warn_component_unused=0)
endfunction()

# Stops (or warns, without TUTTI_STRICT) at a tests/**/*_test.cpp that no tutti_add_test() names: it would never run, and nobody would notice.
function(tutti_check_tests)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*_test.cpp)
  get_property(built GLOBAL PROPERTY TUTTI_TEST_SOURCES)
  set(severity WARNING)
  if(TUTTI_STRICT)
    set(severity SEND_ERROR)
  endif()
  foreach(file IN LISTS files)
    if(NOT file IN_LIST built)
      file(RELATIVE_PATH shown ${PROJECT_SOURCE_DIR} ${file})
      message(${severity} "${shown} is built by no target, so its tests never run. "
        "Add tutti_add_test() to the CMakeLists.txt beside it.")
    endif()
  endforeach()
endfunction()
