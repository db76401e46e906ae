# cmake -DOUTPUT=page_assets.cpp -DHEADER=report/page_assets.h -DPREFIX=kPage -DSTYLES=a.css,b.css -DSCRIPTS=a.js,b.js
#       [-DFILES=kLibrary=library.js,…] -P embed_page.cmake
# Writes a page's styles (kPageStyle), its scripts in one scope (kPageScript), and other files as they are, as C++
# strings. A file without a path is empty.
function(join result files)
  string(REPLACE "," ";" files "${files}")
  set(all "")
  foreach(file IN LISTS files)
    file(READ ${file} text)
    string(APPEND all "${text}\n")
  endforeach()
  set(${result} "${all}" PARENT_SCOPE)
endfunction()

join(style "${STYLES}")
join(script "${SCRIPTS}")
set(script "'use strict';\n(() => {\n${script}})();\n")
file(WRITE ${OUTPUT} "// Made of web/ by cmake/embed_page.cmake.\n#include \"${HEADER}\"\n
namespace tutti {\n
const std::string_view ${PREFIX}Style = R\"tutti(${style})tutti\";\n
const std::string_view ${PREFIX}Script = R\"tutti(${script})tutti\";\n")
string(REPLACE "," ";" files "${FILES}")
foreach(entry IN LISTS files)
  string(REGEX MATCH "^([^=]+)=(.*)$" entry "${entry}")
  set(name "${CMAKE_MATCH_1}")
  set(text "")
  if(CMAKE_MATCH_2)
    file(READ ${CMAKE_MATCH_2} text)
  endif()
  file(APPEND ${OUTPUT} "\nconst std::string_view ${name} = R\"tutti(${text})tutti\";\n")
endforeach()
file(APPEND ${OUTPUT} "\n}  // namespace tutti\n")
