# cmake -DOUTPUT=page_assets.cpp -DSTYLES=a.css,b.css -DSCRIPTS=a.js,b.js -P embed_page.cmake
# Writes the page's styles, and its scripts in one scope, as C++ strings.
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
file(WRITE ${OUTPUT} "// Made of web/ by cmake/embed_page.cmake.\n#include \"report/page_assets.h\"\n
namespace tutti {\n
const std::string_view kPageStyle = R\"tutti(${style})tutti\";\n
const std::string_view kPageScript = R\"tutti(${script})tutti\";\n
}  // namespace tutti\n")
