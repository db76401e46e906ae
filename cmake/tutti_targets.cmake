# One target per folder of src/, one executable per test file. A target states its own needs; nothing is global.

add_library(tutti_warnings INTERFACE)
target_compile_options(tutti_warnings INTERFACE -Wall -Wextra -Werror)
if(TUTTI_SANITIZE)
  target_compile_options(tutti_warnings INTERFACE -fsanitize=${TUTTI_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_link_options(tutti_warnings INTERFACE -fsanitize=${TUTTI_SANITIZE})
endif()

# tutti_add_library(base SOURCES a.cpp b.cpp PUBLIC lib… PRIVATE lib…): the library tutti::base.
function(tutti_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(tutti_${name} STATIC ${ARG_SOURCES})
  add_library(tutti::${name} ALIAS tutti_${name})
  target_include_directories(tutti_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(tutti_${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE} tutti_warnings)
endfunction()

# tutti_add_test(engine_test engine_test.cpp LINK tutti::engine): one executable, one ctest entry.
function(tutti_add_test name source)
  cmake_parse_arguments(ARG "" "TIMEOUT" "LINK" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest GTest::gtest_main Threads::Threads tutti_warnings)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT})
  set_property(GLOBAL APPEND PROPERTY TUTTI_TEST_SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/${source})
endfunction()
