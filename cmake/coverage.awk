# Adds up gcov's lines (gcov --stdout) by folder of src/: a line that runs in any program is covered.
#
#   gcov --stdout … | awk -f coverage.awk
#
# A line of gcov is "COUNT:LINE:text"; COUNT is - for a line without code and ##### for one that never ran.
{ split($0, part, ":"); count = part[1]; gsub(/[ *]/, "", count) }
part[2] + 0 == 0 && part[3] == "Source" {
  file = part[4]
  is_ours = file ~ /^(src|include)\//
  next
}
is_ours && count != "-" && part[2] + 0 > 0 {
  at = file SUBSEP (part[2] + 0)
  if (!(at in ran)) { ran[at] = 0; ++lines[file] }
  if (!ran[at] && count !~ /^[#=]/ && count != "0") { ran[at] = 1; ++covered[file] }
}
END {
  for (file in lines) {
    split(file, folders, "/")
    folder = folders[1] "/" folders[2]
    ++files[folder]; all_lines[folder] += lines[file]; all_covered[folder] += covered[file]
    total += lines[file]; total_covered += covered[file]
  }
  if (!total) { print "no line of src/ was run"; exit 1 }
  printf "%-16s %6s %8s %8s\n", "folder", "files", "lines", "covered"
  sort = "sort"
  for (folder in files) printf "%-16s %6d %8d %7.1f%%\n", folder, files[folder], all_lines[folder], 100 * all_covered[folder] / all_lines[folder] | sort
  close(sort)
  printf "%-16s %6s %8d %7.1f%%\n", "all", "", total, 100 * total_covered / total
}
