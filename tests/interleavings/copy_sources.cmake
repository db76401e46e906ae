# cmake -DFROM=src/comm/shm -DTO=… -DPLANTED=NAME -P copy_sources.cmake: copies the sources of shared memory, with rings
# of 64 bytes and no spinning, so that there are few enough orders to try all; and with a mistake, if one is named.

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

if(PLANTED STREQUAL "sleep_without_second_look")
  edit(progress.cpp "if (advance() || notice_departures()) {" "if (false) {")
elseif(PLANTED STREQUAL "ring_before_arrival")
  edit(rounds.h "    line(rank()).arrived.store(current_);\n" "")
  edit(rounds.h "segment_.state(r).bell.ring();\n    }\n"
    "segment_.state(r).bell.ring();\n    }\n    line(rank()).arrived.store(current_);\n")
elseif(PLANTED STREQUAL "wake_without_new_ticket")
  edit(doorbell.cpp "  word_.fetch_add(1);\n" "")
elseif(PLANTED STREQUAL "one_stage_instead_of_two")
  edit(rounds.h "static_cast<int>(current_ % 2)" "0")
elseif(PLANTED STREQUAL "ring_without_full_check")
  edit(channels.cpp "ring.size - (put - channel.taken.load())" "ring.size")
elseif(PLANTED STREQUAL "mail_before_bytes")
  edit(channels.cpp "channel.put.store(put);\n    notify(to);" "notify(to);\n    channel.put.store(put);")
elseif(PLANTED STREQUAL "mail_taken_after_work")
  edit(channels.cpp "const uint64_t news = mail.exchange(0);" "const uint64_t news = mail.load();")
  edit(channels.cpp "    moved |= pull(r);\n  }\n" "    moved |= pull(r);\n  }\n  mail.exchange(0);\n")
elseif(PLANTED)
  message(FATAL_ERROR "unknown mistake ${PLANTED}")
endif()

foreach(name ${names})
  file(WRITE ${TO}/${name}.new "${text_${name}}")
  file(RENAME ${TO}/${name}.new ${TO}/${name})
endforeach()
