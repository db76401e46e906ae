# Compares what files include with what CMake says their folder links, and finds types that share a name.
#
#   awk -f check_layers.awk layers.txt FILE…      FILE: each header and source below src/ and include/
#
# layers.txt is written by tutti_write_layers(). What is checked:
# - A header includes only folders that its own links PUBLIC, a source also those that it links PRIVATE.
# - No link without an include, none PUBLIC that only sources need, none to a folder further down in src/CMakeLists.txt.
#   (base may be PUBLIC everywhere: the libraries for JSON and text, which headers use, come with it.)
# - A header of include/tutti/ belongs to the folder with the source of that name, and includes no header of src/.
# - Only the folders named here include libtorch. base/torch_compat.h, which says how versions differ, counts as libtorch.
# - No two types of one name in headers of different folders.

function complain(text) { print text; bad = 1 }

# The folder of src/ that a path below src/ or include/, or the name in an #include, belongs to; "" for what is not ours.
function folder_of(path,    name) {
  if (path !~ /^tutti\//) { sub(/\/.*/, "", path); return path in order ? path : "" }
  name = path; gsub(/^tutti\/|\.h$/, "", name)
  if (homes[name] != 1 && !(path in told)) {
    told[path] = 1
    complain("include/" path ": no folder, or more than one, has a source of this name; check_layers.awk may say whose it is")
  }
  return home[name]
}

BEGIN {
  split("engine tune runlog model data train inference", names); for (i in names) may_use_torch[names[i]] = 1
  known["error"] = known["range"] = "base"  # have no source
  known["optimizer"] = "plan"  # engine/optimizer.cpp is the arithmetic
  known["samples"] = known["data_options"] = known["model_options"] = "options"
  for (i = 2; i < ARGC; ++i)
    if (split(ARGV[i], part, "/") == 3 && sub(/\.cpp$/, "", part[3])) { home[part[3]] = part[2]; ++homes[part[3]] }
  for (name in known) { home[name] = known[name]; homes[name] = 1 }
}

FNR == NR {
  if ($2 == "SELF") { if (!($1 in order)) order[$1] = ++folders }
  else if ($1 != $3 && link[$1, $3] != "PUBLIC") link[$1, $3] = $2
  next
}

FNR == 1 {
  inside = FILENAME; sub(/^(src|include)\//, "", inside)
  is_header = inside ~ /\.h$/; is_public = inside ~ /^tutti\//
  folder = folder_of(inside)
  if (folder == "" && !is_public) { sub(/\/.*/, "", inside); complain(FILENAME ": " inside " is no target of src/CMakeLists.txt") }
}

folder != "" && /^ *# *include ["<]/ {
  name = $0; sub(/^ *# *include ["<]/, "", name); sub(/[">].*/, "", name)
  here = FILENAME ":" FNR ": "
  if ((name ~ /^(torch|ATen|c10)\// || name == "base/torch_compat.h") && !may_use_torch[folder] && inside != "base/torch_compat.h")
    complain(here folder " is to do without libtorch")
  to = folder_of(name)
  if (is_public && to != "" && name !~ /^tutti\//) complain(here "a public header includes " name ", which is not public")
  if (to == "" || to == folder) next
  if (used[folder, to] != "PUBLIC") used[folder, to] = is_header ? "PUBLIC" : "PRIVATE"
  if (link[folder, to] == "") complain(here folder " does not link " to)
  else if (is_header && link[folder, to] == "PRIVATE") complain(here folder " links " to " PRIVATE, but a header includes it")
}

is_header && /^(class|struct|union|enum class) [A-Z][A-Za-z0-9]*[^;]*$/ {
  type = $0; sub(/^(class|struct|union|enum class) /, "", type); sub(/[^A-Za-z0-9].*/, "", type)
  if (type in type_folder && type_folder[type] != folder) complain(FILENAME ":" FNR ": " type " is a type of " type_folder[type] ", too")
  type_folder[type] = folder
}

END {
  for (pair in link) {
    if (link[pair] == "") continue
    split(pair, ends, SUBSEP); file = "src/" ends[1] "/CMakeLists.txt: links " ends[2]
    if (used[pair] == "") complain(file ", which nothing there includes")
    else if (link[pair] == "PUBLIC" && used[pair] == "PRIVATE" && ends[2] != "base") complain(file " PUBLIC, but no header there includes it")
    if (order[ends[2]] > order[ends[1]]) complain(file ", which comes after it in src/CMakeLists.txt")
  }
  exit bad
}
