# Run at every build; rewrites the file only when something changed.
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
execute_process(COMMAND git -C ${SOURCE} status --porcelain --untracked-files=no OUTPUT_VARIABLE CHANGES OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT COMMIT)
  set(COMMIT "unknown")
elseif(CHANGES)
  set(COMMIT "${COMMIT}+changes")
endif()
configure_file(${SOURCE}/src/base/build_info.cpp.in ${OUTPUT} @ONLY)
