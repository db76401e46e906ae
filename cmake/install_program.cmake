# cmake --install --component program: the program, the files that it looks for in PREFIX/share/tutti, its documentation, and
# completion for bash and zsh. cpack -G DEB: the same as a Debian package, which depends on the libraries that it links.
# (./tutti install and ./tutti package.)
install(TARGETS tutti RUNTIME DESTINATION bin COMPONENT program)
set_target_properties(tutti PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)  # a libtorch that lies elsewhere
foreach(folder recipes sweeps clusters published)
  install(DIRECTORY ${folder} DESTINATION share/tutti COMPONENT program)
endforeach()
install(DIRECTORY docs DESTINATION share/doc/tutti COMPONENT program)
install(FILES README.md CHANGELOG.md SECURITY.md DESTINATION share/doc/tutti COMPONENT program)
install(FILES LICENSE DESTINATION share/doc/tutti RENAME copyright COMPONENT program)
# The program writes these by itself. Where zsh looks is another folder for Debian's packages than for all others.
set(completion_code [[
  set(tutti_zsh share/zsh/site-functions)
  if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    set(tutti_zsh share/zsh/vendor-completions)
  endif()
  foreach(shell bash zsh)
    set(file @PROJECT_BINARY_DIR@/completion.${shell})
    execute_process(COMMAND @PROJECT_BINARY_DIR@/tutti completion ${shell} OUTPUT_FILE ${file} RESULT_VARIABLE code)
    if(code)
      message(FATAL_ERROR "`tutti completion ${shell}` failed: ${code}")
    endif()
  endforeach()
  file(INSTALL @PROJECT_BINARY_DIR@/completion.bash DESTINATION "${CMAKE_INSTALL_PREFIX}/share/bash-completion/completions" RENAME tutti)
  file(INSTALL @PROJECT_BINARY_DIR@/completion.zsh DESTINATION "${CMAKE_INSTALL_PREFIX}/${tutti_zsh}" RENAME _tutti)
]])
string(CONFIGURE "${completion_code}" completion_code @ONLY)
install(CODE "${completion_code}" COMPONENT program)

set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL program)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_NAME tutti)
set(CPACK_PACKAGE_VENDOR Tutti)
set(CPACK_PACKAGE_CONTACT "The Tutti project <tutti@localhost>")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME tutti)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
# Without a fast BLAS libtorch takes the reference one, which is many times slower.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "libopenblas0-pthread | libopenblas0")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "openmpi-bin, gnuplot-nox, curl, iproute2, bash-completion")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "slurm-client, iperf3")
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION "train one neural network on many processors
Tutti runs data-parallel training on cores, GPUs and machines, with many ways of
synchronizing gradients in one program, and shows where the time goes. It predicts
throughput on clusters, and runs studies that can be resumed.")
# What is packed is what has been built, and not everything there is.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
include(CPack)
