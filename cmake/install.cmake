# cmake --install: what an outside program needs for find_package(Tutti).
#   libtutti_comm.so  job and communicator on plain memory, without libtorch: Tutti::comm
#   libtutti.so       the rest behind include/tutti: Tutti::tutti
# Shared, so that such a program has to find libtorch, fmt and nlohmann-json alone, and not what we use ourselves.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# tutti_add_shared(tutti FOLDERS plan engine LINK lib…): libtutti.so, from what these folders have compiled already.
function(tutti_add_shared name)
  cmake_parse_arguments(ARG "" "" "FOLDERS;LINK" ${ARGN})
  set(target tutti_shared_${name})
  add_library(${target} SHARED)
  foreach(folder ${ARG_FOLDERS})
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:tutti_${folder}>)
    # What a folder links besides other folders, which are here too or in the library linked below.
    get_target_property(links tutti_${folder} LINK_LIBRARIES)
    list(FILTER links EXCLUDE REGEX "^tutti::|^tutti_warnings$")
    target_link_libraries(${target} PRIVATE ${links})
  endforeach()
  target_link_libraries(${target} PUBLIC ${ARG_LINK} PRIVATE tutti_fmt Threads::Threads)
  if(NOT TUTTI_SANITIZE)  # whose functions the program brings
    target_link_options(${target} PRIVATE -Wl,--no-undefined)
  endif()
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME ${name} EXPORT_NAME ${name}
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    INSTALL_RPATH "$ORIGIN" INSTALL_RPATH_USE_LINK_PATH ON)  # the libtorch that it was built with
endfunction()

tutti_add_shared(tutti_comm FOLDERS base comm)
foreach(isa generic avx2 avx512)
  if(TARGET tutti_sum_${isa})
    target_sources(tutti_shared_tutti_comm PRIVATE $<TARGET_OBJECTS:tutti_sum_${isa}>)
  endif()
endforeach()
set_target_properties(tutti_shared_tutti_comm PROPERTIES EXPORT_NAME comm)
set(folders plan options published record sim probe report status engine tune runlog)
if(TUTTI_CUDA)
  list(APPEND folders kernels)
endif()
tutti_add_shared(tutti FOLDERS ${folders} LINK tutti_shared_tutti_comm)

install(TARGETS tutti_shared_tutti_comm tutti_shared_tutti EXPORT TuttiTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(DIRECTORY include/tutti DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
install(EXPORT TuttiTargets NAMESPACE Tutti:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Tutti COMPONENT library)
get_target_property(TUTTI_FMT_DEFINITIONS tutti_fmt INTERFACE_COMPILE_DEFINITIONS)
if(NOT TUTTI_FMT_DEFINITIONS)
  set(TUTTI_FMT_DEFINITIONS "")
endif()
configure_package_config_file(cmake/TuttiConfig.cmake.in ${PROJECT_BINARY_DIR}/TuttiConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Tutti)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TuttiConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/TuttiConfig.cmake ${PROJECT_BINARY_DIR}/TuttiConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/Tutti COMPONENT library)
