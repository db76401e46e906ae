#include <nlohmann/json.hpp>

#include "fuzz/fuzz.h"
#include "report/inline_svg.h"
#include "report/page.h"
#include "report/timeline.h"

namespace tutti::fuzz {
namespace {

using nlohmann::json;

void check(bool is_so, const char* otherwise) {
  if (!is_so) throw std::logic_error(otherwise);
}

void copy_figure(std::string_view text) {
  const std::string once = inline_svg(text, "p-", "label");
  for (const char* harm : {"<script", "<style", "<foreignObject", "<iframe", "href=\"java", "href=\"http"})
    check(once.find(harm) == std::string::npos, "harm is left in a figure");
  check(once.empty() || (once.rfind("<svg", 0) == 0 && once.substr(once.size() - 6) == "</svg>") || once.back() == '>',
        "a figure is not whole");
  // What was copied once is harmless, so copying it again finds nothing to leave out.
  const std::string twice = inline_svg(once, "", "label");
  check(inline_svg(twice, "", "label") == twice, "copying goes on changing a figure");
}

void show(std::string_view text) {
  const json document = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) throw Error("this is no JSON");
  const std::string page = render_page(document);
  check(page.find("<script>alert") == std::string::npos, "a text has become a script");
}

}  // namespace

/// The input as a figure, as a page's document and as a trace.
static std::string fuzz_page(std::string_view input) {
  return outcome([&] { copy_figure(input); }) + outcome([&] { show(input); }) + outcome([&] {
           const json trace = json::parse(input, nullptr, /*allow_exceptions=*/false);
           if (!trace.is_discarded()) render_page({{"timelines", {timeline_from_trace(trace)}}});
         });
}

static std::vector<std::string> page_seeds() {
  return {
      R"(<?xml version="1.0"?><svg width="9" height="9"><g id="a" fill='rgb(1,2,3)'><use xlink:href='#a'/>x</g></svg>)",
      R"(<svg viewBox="0 0 1 1"><script>alert(1)</script><style>a</style><rect style='fill:url(#a)' onload="x"/><!-- --></svg>)",
      "<![CDATA[ ]]>",
      "<foreignObject><a href='javascript:x'></svg>",
      R"({"title":"<script>alert(1)</script>","tables":[{"columns":[{"key":"a","kind":"percent","digits":2}],"rows":[{"a":{"value":1,"deviation":2,"label":"x"}}]}]})",
      R"({"notes":["a",{"text":"b","level":"note"}],"highlights":[{"label":"l","value":3}],"environment":{"a":{"b":[1,"c"]}}})",
      R"({"timelines":[{"lanes":[{"rank":0}],"events":[{"lane":0,"begin_us":1,"end_us":2.5,"kind":"wait"}]}],"figures":[{"svg":"<svg/>"}]})",
      R"({"traceEvents":[{"ph":"X","pid":0,"tid":1,"cat":"step","name":"step 1","ts":1,"dur":2,"args":{"step":1}},{"ph":"M","name":"thread_name","args":{"name":"c"}}]})",
      "\"kind\":\"duration\"",
      "1e300",
      "null"};
}

static const Target kPage("page", fuzz_page, page_seeds);

}  // namespace tutti::fuzz
