# Counts test cases and closes with one line: tests: N passed, N failed, N skipped.
#
#   awk -f count_tests.awk -v results=FOLDER -v status=RC ctest.log
#
# ctest's log says which tests ran and how each ended. A test that left FOLDER/NAME.xml (GoogleTest's report) counts
# case by case; one that ended badly though its cases passed, or before it could report, counts as one more failure;
# one without a report counts as one. Every case that was skipped is listed with its reason. Exits with 1 if anything
# failed, if ctest did (its RC), or if nothing ran.

function value(line, name,    from, text) {
  from = index(line, " " name "=\"")
  if (!from) return ""
  text = substr(line, from + length(name) + 3)
  return substr(text, 1, index(text, "\"") - 1)
}

function readable(text) {
  gsub(/&#x0A;|&#10;/, "\n", text); gsub(/&lt;/, "<", text); gsub(/&gt;/, ">", text)
  gsub(/&quot;/, "\"", text); gsub(/&apos;/, "'", text); gsub(/&amp;/, "\\&", text)
  # GoogleTest puts the place on the first line and what the test said on the next.
  sub(/^[^\n]*:[0-9]+\n/, "", text); sub(/\n+$/, "", text); gsub(/\n+/, " ", text)
  return text
}

function close_case() {
  if (!in_case) return
  in_case = 0
  if (case_failed) { ++case_failures; ++failed; failures[++failure_count] = case_name }
  else if (case_skipped) { ++skipped; skips[++skip_count] = case_name (case_reason == "" ? "" : ": " case_reason) }
  else ++passed
}

# Adds up one report; false if there is none, or none that was finished.
function read_report(path,    line, complete, start, is_read) {
  case_failures = 0; in_case = 0; in_text = 0; complete = 0
  while ((getline line < path) > 0) {
    is_read = 1
    # What a test printed may look like anything: skip it.
    if (in_text) { if (!(start = index(line, "]]>"))) continue; line = substr(line, start + 3); in_text = 0 }
    if ((start = index(line, "<![CDATA["))) {
      if (!index(substr(line, start), "]]>")) in_text = 1
      line = substr(line, 1, start - 1)
    }
    if (line ~ /<testcase /) {
      close_case()
      in_case = 1; case_failed = 0; case_reason = ""
      case_name = value(line, "classname") "." value(line, "name")
      case_skipped = line ~ / result="(skipped|suppressed)"/ || line ~ / status="notrun"/
      if (line ~ / result="suppressed"/ || line ~ / status="notrun"/) case_reason = "disabled in the source"
    }
    if (in_case && line ~ /<(failure|error)[ >]/) case_failed = 1
    if (in_case && line ~ /<skipped[ >\/]/) { case_skipped = 1; case_reason = readable(value(line, "message")) }
    if (line ~ /<\/testcase>/) close_case()
    if (line ~ /<\/testsuites>/) complete = 1
  }
  close_case()
  close(path)
  return is_read && complete
}

BEGIN { passed = failed = skipped = 0 }

# " 3/12 Test  #3: comm_test ......   Passed    0.31 sec", or ***Failed, ***Timeout, ***Exception: SegFault, …
match($0, /^ *[0-9]+\/[0-9]+ Test +#[0-9]+: /) {
  rest = substr($0, RLENGTH + 1)
  name = rest; sub(/ .*/, "", name)
  if (name in seen) next
  seen[name] = 1
  outcome = substr(rest, length(name) + 1)
  sub(/^[ .]*/, "", outcome); sub(/ +[0-9.]+ sec.*$/, "", outcome); gsub(/\*/, "", outcome)
  has_report = read_report(results "/" name ".xml")
  if (outcome ~ /^Passed/) { if (!has_report) ++passed }
  else if (outcome ~ /^Skipped/) { if (!has_report) { ++skipped; skips[++skip_count] = name } }
  else if (!has_report || case_failures == 0) { ++failed; failures[++failure_count] = name " as a whole: " outcome }
}

END {
  for (i = 1; i <= skip_count; ++i) print "skipped: " skips[i]
  for (i = 1; i <= failure_count; ++i) print "failed: " failures[i]
  if (passed + failed == 0) print "no test ran"
  else if (status != 0 && failed == 0) print "ctest itself failed (exit status " status "); see above"
  printf "tests: %d passed, %d failed, %d skipped\n", passed, failed, skipped
  exit (failed > 0 || status != 0 || passed == 0) ? 1 : 0
}
