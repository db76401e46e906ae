# cmake -DFROM=src/comm/shm -DTO=… -P copy_sources.cmake: copies the sources of shared memory, with rings of 64 bytes and no
# spinning, so that there are few enough orders to try all; and with mistakes, of which none is made unless asked for.

file(GLOB files ${FROM}/*.h ${FROM}/*.cpp)
file(MAKE_DIRECTORY ${TO})
foreach(file ${files})
  get_filename_component(name ${file} NAME)
  file(READ ${file} text_${name})
  list(APPEND names ${name})
endforeach()

# What is not there any more cannot be made small or wrong: whoever changes it changes this file, too.
function(edit name from to)
  string(FIND "${text_${name}}" "${from}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "${FROM}/${name} has no '${from}' any more, which tests/interleavings/copy_sources.cmake replaces "
      "by '${to}'. Say there what stands in its place.")
  endif()
  string(REPLACE "${from}" "${to}" text "${text_${name}}")
  set(text_${name} "${text}" PARENT_SCOPE)
endfunction()

edit(segment.cpp "256 * 1024 : 64 * 1024" "64 : 64")
edit(segment.cpp "  check_memory_file(file_, bytes_);\n" "")  # there is no file: all ranks are in one process
edit(segment.cpp "void check_memory_file" "[[maybe_unused]] void check_memory_file")
edit(channels.cpp "kPieceBytes = 32 * 1024" "kPieceBytes = 32")
edit(progress.cpp "kYields = 2" "kYields = 0")
edit(progress.cpp "rounds_ % 16 != 0" "rounds_ % 1 != 0")

# The mistakes, each behind its switch in explore.h.
edit(progress.cpp "if (advance() || notice_departures()) {"
  "if (!interleave::planted.sleep_without_second_look && (advance() || notice_departures())) {")
edit(rounds.h "    line(rank()).arrived.store(current_);\n"
  "    if (!interleave::planted.ring_before_arrival) line(rank()).arrived.store(current_);\n")
edit(rounds.h "segment_.state(r).bell.ring();\n    }\n"
  "segment_.state(r).bell.ring();\n    }\n    if (interleave::planted.ring_before_arrival) line(rank()).arrived.store(current_);\n")
edit(doorbell.cpp "  word_.fetch_add(1);\n" "  if (!interleave::planted.wake_without_new_ticket) word_.fetch_add(1);\n")
edit(rounds.h "static_cast<int>(current_ % 2)" "interleave::planted.one_stage_instead_of_two ? 0 : static_cast<int>(current_ % 2)")
edit(channels.cpp "ring.size - (put - channel.taken.load())"
  "ring.size - (interleave::planted.ring_without_full_check ? 0 : put - channel.taken.load())")
edit(channels.cpp "channel.put.store(put);\n    notify(to);"
  "if (interleave::planted.mail_before_bytes) notify(to);\n    channel.put.store(put);\n    if (!interleave::planted.mail_before_bytes) notify(to);")
edit(channels.cpp "const uint64_t news = mail.exchange(0);"
  "const uint64_t news = interleave::planted.mail_taken_after_work ? mail.load() : mail.exchange(0);")
edit(channels.cpp "    moved |= pull(r);\n  }\n"
  "    moved |= pull(r);\n  }\n  if (interleave::planted.mail_taken_after_work) mail.exchange(0);\n")

foreach(name ${names})
  file(WRITE ${TO}/${name}.new "${text_${name}}")
  file(RENAME ${TO}/${name}.new ${TO}/${name})
endforeach()
