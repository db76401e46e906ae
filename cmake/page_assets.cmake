# Front ends of web/ travel in the program: a page is made or served without looking for files.

# Curves on pages are drawn by Chart.js. Without it they say so, and show the rest.
find_file(TUTTI_CHART_JS NAMES chart.umd.js chart.min.js PATHS /usr/share/javascript/chart.js /usr/share/nodejs/chart.js/dist
  NO_DEFAULT_PATH DOC "Chart.js as one script (Debian: libjs-chart.js); optional, for curves on pages")
if(NOT TUTTI_CHART_JS)
  message(STATUS "Without Chart.js (Debian: libjs-chart.js): pages have no curves")
endif()

# tutti_embed_page(page_assets HEADER report/page_assets.h PREFIX kPage STYLES a.css SCRIPTS a.js FILES kLibrary=/a/file):
# makes page_assets.cpp in the build folder, of files in web/; see embed_page.cmake.
function(tutti_embed_page name)
  cmake_parse_arguments(ARG "" "HEADER;PREFIX" "STYLES;SCRIPTS;FILES" ${ARGN})
  list(TRANSFORM ARG_STYLES PREPEND ${PROJECT_SOURCE_DIR}/web/)
  list(TRANSFORM ARG_SCRIPTS PREPEND ${PROJECT_SOURCE_DIR}/web/)
  set(inputs ${ARG_STYLES} ${ARG_SCRIPTS})
  foreach(entry IN LISTS ARG_FILES)
    string(REGEX REPLACE "^[^=]*=" "" path "${entry}")
    if(path)
      list(APPEND inputs ${path})
    endif()
  endforeach()
  list(JOIN ARG_STYLES "," styles)
  list(JOIN ARG_SCRIPTS "," scripts)
  list(JOIN ARG_FILES "," files)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DHEADER=${ARG_HEADER} -DPREFIX=${ARG_PREFIX} "-DSTYLES=${styles}" "-DSCRIPTS=${scripts}"
            "-DFILES=${files}" -P ${script}
    DEPENDS ${inputs} ${script} VERBATIM)
endfunction()
