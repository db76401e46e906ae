# GoogleTest. Debian keeps GoogleMock, whose matchers the tests use, in a package of its own, but its source comes with
# GoogleTest's; where only that is installed, it is built here.
find_package(GTest REQUIRED)
if(NOT TARGET GTest::gmock)
  find_path(TUTTI_GMOCK_SOURCE src/gmock-all.cc PATHS /usr/src/googletest/googlemock /usr/src/gmock NO_DEFAULT_PATH)
  if(NOT TUTTI_GMOCK_SOURCE)
    message(FATAL_ERROR "GoogleMock is missing; on Debian: apt-get install libgmock-dev")
  endif()
  add_library(tutti_gmock STATIC EXCLUDE_FROM_ALL ${TUTTI_GMOCK_SOURCE}/src/gmock-all.cc)
  target_include_directories(tutti_gmock SYSTEM PUBLIC ${TUTTI_GMOCK_SOURCE}/include PRIVATE ${TUTTI_GMOCK_SOURCE})
  target_link_libraries(tutti_gmock PUBLIC GTest::gtest)
  add_library(GTest::gmock ALIAS tutti_gmock)
endif()
