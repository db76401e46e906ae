// sample_page PAGE.html [TRACE.json]: writes a page with a bit of everything, to look at; with the timeline of a trace
// that `tutti train --trace` wrote, if one is named.
#include <exception>
#include <iostream>
#include <stdexcept>

#include "base/files.h"
#include "report/page.h"
#include "report/sample_document.h"

int main(int count, char** words) try {
  if (count < 2) throw std::runtime_error("usage: sample_page PAGE.html [TRACE.json]");
  nlohmann::json document = tutti::sample_document();
  if (count > 2) {
    nlohmann::json timeline = tutti::timeline_from_trace(nlohmann::json::parse(tutti::read_file(words[2])));
    timeline["source"] = "measured";
    document["timelines"] = {timeline};
  }
  tutti::write_file_atomically(words[1], tutti::render_page(document));
  return 0;
} catch (const std::exception& error) {
  std::cerr << "sample_page: " << error.what() << '\n';
  return 1;
}
