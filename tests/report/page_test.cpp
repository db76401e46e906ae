#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "report/html.h"
#include "report/inline_svg.h"
#include "report/page.h"
#include "report/page_assets.h"
#include "report/page_table.h"
#include "report/sample_document.h"
#include "support/text.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using nlohmann::json;

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++found;
  return found;
}

/// The page without its style and its script, which hold words of their own.
std::string content_of(const json& document) {
  const std::string page = render_page(document);
  const std::size_t begin = page.find("<body>"), end = page.rfind("<script>");
  return page.substr(begin, end - begin);
}

/// The first cell of a table with one column; another row says something, so that the column is not left out.
std::string cell(const json& column, const json& value) {
  json described = column;
  described["key"] = "k";
  const std::string html =
      render_table({{"title", "t"}, {"columns", {described}}, {"rows", {{{"k", value}}, {{"k", "x"}}}}}, "table");
  const std::size_t begin = html.find("<tbody>\n<tr>") + 12;
  return html.substr(begin, html.find("</tr>", begin) - begin);
}

TEST(Page, HoldsEveryPartOfItsDocument) {
  const std::string page = content_of(sample_document());
  for (const char* part :
       {"<h1>Strategies and networks</h1>", "A sample page with invented numbers",
        "<code>./tutti bench strategies-networks", "class=\"warning\">On 1GbE", "class=\"note\">Rows of 100GbIB",
        "<dt>Over bsp</dt><dd>1.24 ×", "id=\"figure-throughput\"", "id=\"figure-efficiency\"",
        "id=\"table-throughput\"", "data-timeline=\"0\"", "<dt>load start</dt><dd>0.4</dd>"})
    EXPECT_TRUE(contains(page, part)) << part;
  EXPECT_EQ(count(page, "<tr>"), 43);  // one of headers
  EXPECT_EQ(count(page, "<svg"), 2);
}

TEST(Page, OfAnEmptyDocumentSaysThatThereIsNothing) {
  const std::string page = content_of(json::object());
  EXPECT_TRUE(contains(page, "<h1>Tutti report</h1>"));
  EXPECT_TRUE(contains(page, "There is nothing to show yet."));
  EXPECT_FALSE(contains(page, "<table"));
  const std::string none =
      content_of({{"tables", json::array()}, {"figures", nullptr}, {"environment", json::object()}});
  EXPECT_TRUE(contains(none, "There is nothing to show yet."));
}

TEST(Page, LoadsNothingAndRunsNoScriptButItsOwn) {
  const std::string page = render_page(sample_document());
  EXPECT_TRUE(contains(page, "default-src 'none'"));
  EXPECT_TRUE(std::regex_search(page, std::regex("script-src 'sha256-[A-Za-z0-9+/]{43}='")));
  for (const char* reference : {" src=", "<link", "@import", "url(", "http:", "https:"})
    EXPECT_FALSE(contains(page, reference)) << reference;
  // What would end the elements that they stand in.
  EXPECT_FALSE(contains(std::string(kPageScript), "</script"));
  EXPECT_FALSE(contains(std::string(kPageScript), "<!--"));
  EXPECT_FALSE(contains(std::string(kPageStyle), "</style"));
  EXPECT_LT(kPageScript.size() + kPageStyle.size(), 150'000u);
}

TEST(Page, ShowsHostileTextsAsTexts) {
  const std::string hostile = "</script><script>alert(1)</script>\"'&<b>";
  json document = sample_document();
  for (const char* key : {"title", "subtitle", "command", "generated"}) document[key] = hostile;
  document["notes"] = {hostile, {{"text", hostile}, {"level", hostile}}};
  document["highlights"] = {{{"label", hostile}, {"value", hostile}, {"detail", hostile}}};
  document["environment"] = {{hostile, {{hostile, {hostile, 1}}}}};
  for (json* part : {&document["figures"][0], &document["tables"][0], &document["timelines"][0]})
    for (const char* key : {"id", "title", "caption", "source"}) (*part)[key] = hostile;
  document["tables"][0]["columns"][0]["label"] = hostile;
  document["tables"][0]["rows"][0]["strategy"] = {{"text", hostile}, {"label", hostile}};
  document["tables"][0]["rows"][1]["source"] = hostile;
  document["timelines"][0]["events"][0]["name"] = hostile;
  document["timelines"][0]["events"][0]["details"] = {{hostile, hostile}};
  const std::string page = content_of(document);
  EXPECT_FALSE(contains(page, "<script>"));
  EXPECT_FALSE(contains(page, "<b>"));
  EXPECT_EQ(count(page, "</script>"), 1);  // of the timelines' data
  EXPECT_TRUE(contains(page, "<h1>&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;&lt;b&gt;</h1>"));
}

TEST(Page, KeepsTheTimelinesDataWhole) {
  json document = {{"timelines",
                    {{{"title", "t\u2028</script>&\xff"},
                      {"lanes", {{{"rank", 0}, {"name", "compute"}}}},
                      {"events", {{{"lane", 0}, {"begin_us", 1.5}, {"end_us", 2}, {"name", "<b>"}}}}}}}};
  const std::string page = content_of(document);
  const std::string opening = "id=\"timelines-data\">";
  const std::size_t begin = page.find(opening) + opening.size();
  const std::string text = page.substr(begin, page.find("</script>", begin) - begin);
  for (const char c : text) EXPECT_LT(static_cast<unsigned char>(c), 0x80);
  document["timelines"][0]["title"] = "t\u2028</script>&\ufffd";
  EXPECT_EQ(json::parse(text), document.at("timelines"));
}

TEST(Page, FoldsAwayWhatWouldFillTheScreen) {
  const json few = {{"notes", json::array({"a", "b", "c", "d", "e"})}};
  EXPECT_FALSE(contains(content_of(few), "<details"));
  const json many = {{"notes", json::array({"a", "b", "c", "d", "e", "f"})}};
  const std::string page = content_of(many);
  EXPECT_TRUE(contains(page, "<summary>2 more notes</summary>"));
  EXPECT_LT(page.find(">d<"), page.find("<details"));
  EXPECT_GT(page.find(">e<"), page.find("<details"));
  json figures = json::array();
  for (int i = 0; i < 14; ++i) figures.push_back({{"title", "figure"}, {"svg", "<svg></svg>"}});
  EXPECT_TRUE(contains(content_of({{"figures", figures}}), "<summary>8 more figures</summary>"));
}

TEST(Page, NamesPartsWithoutNamingTwoTheSame) {
  const json table = {{"title", "Same"}, {"columns", {{{"key", "a"}}}}, {"rows", json::array()}};
  const std::string page = content_of({{"tables", {table, table}}});
  EXPECT_EQ(count(page, "id=\"table-same\""), 1);
  EXPECT_EQ(count(page, "id=\"table-same-2\""), 1);
}

TEST(Page, SaysWhichPartOfADocumentIsWrong) {
  const auto complaint = [](const json& document) -> std::string {
    try {
      render_page(document);
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_EQ(complaint(json::array()), "page document: it is not an object");
  EXPECT_EQ(complaint({{"tables", 3}}), "page document: 'tables' is not a list");
  EXPECT_EQ(complaint({{"tables", {{{"title", "x"}}}}}), "page document: table 'x' has no list of columns");
  EXPECT_EQ(complaint({{"tables", {{{"title", "x"}, {"columns", {{{"label", "A"}}}}}}}}),
            "page document: column 1 of table 'x' has no key");
  EXPECT_TRUE(contains(complaint({{"tables", {{{"title", "x"}, {"columns", {{{"key", "a"}, {"kind", "numbr"}}}}}}}}),
                       "'numbr'; known:"));
  const json event = {{"lane", 1}, {"begin_us", 0}, {"end_us", 1}};
  EXPECT_EQ(complaint({{"timelines", {{{"title", "x"}, {"lanes", {{{"rank", 0}}}}, {"events", {event}}}}}}),
            "page document: an event of timeline 'x' is in lane 1 of 1");
}

TEST(PageTable, ShowsEachKindInItsForm) {
  EXPECT_EQ(cell({{"kind", "text"}}, "a < b"), "<td>a &lt; b</td>");
  EXPECT_EQ(cell({{"kind", "number"}}, 12), "<td data-value=\"12\" class=\"number\">12</td>");
  EXPECT_EQ(cell({{"kind", "number"}, {"digits", 2}}, 1.005), "<td data-value=\"1.005\" class=\"number\">1.00</td>");
  EXPECT_EQ(cell({{"kind", "percent"}, {"bar", false}}, 0.9337),
            "<td data-value=\"0.9337\" class=\"number\">93.4 %</td>");
  EXPECT_EQ(cell({{"kind", "duration"}}, 3723), "<td data-value=\"3723\" class=\"number\">1:02:03</td>");
  EXPECT_EQ(cell({{"kind", "duration"}}, 0.0123), "<td data-value=\"0.0123\" class=\"number\">12.3 ms</td>");
  EXPECT_EQ(cell({{"kind", "duration"}, {"digits", 1}}, 59.94),
            "<td data-value=\"59.94\" class=\"number\">59.9 s</td>");
  EXPECT_EQ(cell({{"kind", "plusminus"}, {"digits", 2}, {"bar", false}}, {{"value", 925.02}, {"deviation", 4.418}}),
            "<td data-value=\"925.02\" class=\"number\">925.02 <span class=\"deviation\">± 4.42</span></td>");
}

TEST(PageTable, ShowsTextsInPlaceOfValuesThatStillSort) {
  EXPECT_EQ(cell({{"kind", "number"}}, {{"value", 32}, {"text", "lm[1,6]"}, {"label", "published"}}),
            "<td data-value=\"32\" class=\"number\">lm[1,6] <span class=\"tag tag-published\">published</span></td>");
  EXPECT_EQ(cell({{"kind", "text"}}, nullptr), "<td><span class=\"none\">–</span></td>");
  EXPECT_EQ(cell({{"kind", "number"}}, std::numeric_limits<double>::quiet_NaN()),
            "<td class=\"number\"><span class=\"none\">–</span></td>");
  EXPECT_EQ(cell({{"kind", "text"}}, true), "<td>true</td>");
}

TEST(PageTable, LeavesOutColumnsWithoutAnyValue) {
  const json columns = {{{"key", "a"}}, {{"key", "b"}}, {{"key", "c"}, {"kind", "number"}}};
  const std::string html =
      render_table({{"title", "t"}, {"columns", columns}, {"rows", {{{"a", 1}, {"b", ""}}, {{"c", nullptr}}}}}, "t");
  EXPECT_EQ(count(html, "<th "), 1);
  EXPECT_EQ(count(html, "<td"), 2);
  // Without rows, the headers are all there is to see.
  EXPECT_EQ(count(render_table({{"title", "t"}, {"columns", columns}}, "t"), "<th "), 3);
}

TEST(PageTable, DrawsBarsAsLongAsTheValuesAreLarge) {
  const std::string html =
      render_table({{"title", "t"},
                    {"columns", {{{"key", "a"}, {"kind", "plusminus"}}, {{"key", "b"}, {"kind", "percent"}}}},
                    {"rows", {{{"a", 50}, {"b", 0.25}}, {{"a", 200}, {"b", 0.5}}, {{"a", -1}}}}},
                   "t");
  for (const char* share :
       {"--share:25.0\" class=\"number with-bar\">50.0", "--share:100.0\" class=\"number with-bar\">200.0",
        "--share:25.0\" class=\"number with-bar\">25.0 %", "class=\"number\">-1.0"})
    EXPECT_TRUE(contains(html, share)) << share << " in " << html;
}

TEST(InlineSvg, KeepsShapesAndTexts) {
  const std::string svg = inline_svg(
      "<?xml version='1.0'?><!DOCTYPE svg><svg width='640' height='400' xmlns='x'><title>Gnuplot</title><desc>d</desc>"
      "<defs><circle id='dot' r='1'/></defs><!-- no --><use xlink:href='#dot' transform='rotate(45)'/>"
      "<g fill='rgb( 0, 1, 2)' clip-path='url(#dot)'><text x=\"1\">a &lt; b</text></g></svg><p>after</p>",
      "f1-", "A \"label\"");
  EXPECT_EQ(svg,
            "<svg viewBox=\"0 0 640 400\" role=\"img\" aria-label=\"A &quot;label&quot;\"><desc>d</desc>"
            "<defs><circle id=\"f1-dot\" r=\"1\"/></defs><use href=\"#f1-dot\" transform=\"rotate(45)\"/>"
            "<g fill=\"rgb( 0, 1, 2)\" clip-path=\"url(#f1-dot)\"><text x=\"1\">a &lt; b</text></g></svg>");
}

TEST(InlineSvg, LeavesOutWhatRunsOrLoads) {
  const auto inside = [](const std::string& text) {
    const std::string svg = inline_svg("<svg viewBox='0 0 1 1'>" + text + "</svg>", "", "");
    const std::string opening = "<svg role=\"img\" aria-label=\"\" viewBox=\"0 0 1 1\">";
    EXPECT_EQ(svg.substr(0, opening.size()), opening);
    return svg.substr(opening.size(), svg.size() - opening.size() - 6);
  };
  EXPECT_EQ(inside("<script>x</script><rect width='1'/>"), "<rect width=\"1\"/>");
  EXPECT_EQ(inside("<script><![CDATA[ a<b </script> ]]></script>"), "");
  EXPECT_EQ(inside("<style>@import 'x'</style><foreignObject><b>x</b></foreignObject>"), "");
  EXPECT_EQ(inside("<rect onclick='x' width='1'/>"), "<rect width=\"1\"/>");
  EXPECT_EQ(inside("<a href='javascript:x'><rect/></a>"), "<rect/>");
  EXPECT_EQ(inside("<use href='http://x/y#z'/><image href='http://x'/>"), "<use/><image/>");
  EXPECT_EQ(inside("<image href='data:image/png;base64,AA=='/>"), "<image href=\"data:image/png;base64,AA==\"/>");
  EXPECT_EQ(inside("<image href='data:image/svg+xml;base64,AA=='/>"), "<image/>");
  EXPECT_EQ(inside("<rect fill='url(http://x)' style='fill:url(x)' stroke='u&#114;l(x)'/>"), "<rect/>");
  EXPECT_EQ(inside("<rect style='stroke:rgb(1,2,3)' x='\"><script>'/>"),
            "<rect style=\"stroke:rgb(1,2,3)\" x=\"&quot;>&lt;script>\"/>");
  EXPECT_EQ(inside("</g></div><g>x"), "<g>x</g>");  // closes what is open, and nothing else
  EXPECT_EQ(inside("<SCRIPT>x</SCRIPT><iframe src='x'>"), "x");
  EXPECT_EQ(inline_svg("no picture", "", ""), "");
  EXPECT_EQ(inline_svg("<svg><rect width='1", "", ""),
            "<svg role=\"img\" aria-label=\"\"><rect width=\"1\"></rect></svg>");
}

TEST(Page, MendsWhatIsNotUtf8) {
  const json document = {{"title", "a\xff\x62 ± \xe2<b"}, {"figures", {{{"svg", "<svg><text>\xc3</text></svg>"}}}}};
  const std::string page = content_of(document);
  EXPECT_TRUE(contains(page, "<h1>a\ufffdb ± \ufffd&lt;b</h1>"));
  EXPECT_TRUE(contains(page, "<text>\ufffd</text>"));
}

TEST(Html, EscapesAndNames) {
  EXPECT_EQ(escape_html("<a href=\"x\">'&\x01\n"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;\n");
  EXPECT_EQ(slug("Samples/s, by network!"), "samples-s-by-network");
  EXPECT_EQ(slug("±"), "");
}

}  // namespace
}  // namespace tutti
