#include "report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "base/utf8.h"
#include "report/html.h"
#include "report/inline_svg.h"
#include "report/page_assets.h"
#include "report/page_table.h"
#include "tutti/error.h"

namespace tutti {
namespace {

using nlohmann::json;

// More than these are folded away.
constexpr std::size_t kMostShownNotes = 4, kMostFigures = 6;

const json kNoList = json::array();

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

const json& list_of(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return kNoList;
  if (!found->is_array()) throw Error("page document: '{}' is not a list", key);
  return *found;
}

/// The digest as a Content-Security-Policy writes it: base64 of its 32 bytes.
std::string policy_digest(std::string_view text) {
  Sha256 sha;
  sha.update(text);
  const std::string hex = sha.hex();
  const std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string base64;
  for (std::size_t at = 0; at < hex.size(); at += 6) {
    // Three bytes are six hexadecimal digits or four of base64; the last group has two bytes.
    const std::string group = hex.substr(at, 6);
    const unsigned long bits = std::stoul(group + std::string(6 - group.size(), '0'), nullptr, 16);
    for (const int shift : {18, 12, 6, 0}) base64 += digits[(bits >> shift) & 63];
  }
  base64.back() = '=';
  return "sha256-" + base64;
}

/// Gives every part of the page a name that no other has.
class Names {
 public:
  std::string unique(const std::string& kind, const json& part) {
    std::string base = slug(text_of(part, "id"));
    if (base.empty()) base = slug(text_of(part, "title"));
    base = base.empty() ? kind : kind + "-" + base;
    std::string name = base;
    for (int n = 2; !used_.insert(name).second; ++n) name = fmt::format("{}-{}", base, n);
    return name;
  }

 private:
  std::set<std::string> used_;
};

struct Section {
  std::string id, title, content;
};

/// The first entries, and the others folded away where they are more than a few: what comes below them counts too.
std::string fold(const std::vector<std::string>& entries, std::size_t most, const char* what,
                 const std::function<std::string(const std::string&)>& wrap) {
  const std::size_t shown = entries.size() > most + 1 ? most : entries.size();
  std::string first, rest;
  for (std::size_t i = 0; i < entries.size(); ++i) (i < shown ? first : rest) += entries[i];
  std::string html = first.empty() ? "" : wrap(first);
  if (!rest.empty())
    html += fmt::format("<details class=\"fold\"><summary>{} more {}</summary>\n{}</details>\n", entries.size() - shown,
                        what, wrap(rest));
  return html;
}

std::string render_notes(const json& notes) {
  std::vector<std::string> entries;
  for (const json& note : notes) {
    const bool is_plain = !note.is_object();
    const std::string text =
        is_plain ? (note.is_string() ? note.get<std::string>() : note.dump()) : text_of(note, "text");
    const bool is_warning = is_plain || text_of(note, "level") != "note";
    entries.push_back(fmt::format("<li class=\"{}\">{}</li>\n", is_warning ? "warning" : "note", escape_html(text)));
  }
  return fold(entries, kMostShownNotes, "notes",
              [](const std::string& list) { return "<ul class=\"notes\">\n" + list + "</ul>\n"; });
}

std::string render_highlights(const json& highlights) {
  if (highlights.empty()) return "";
  std::string html = "<dl class=\"highlights\">\n";
  for (const json& entry : highlights) {
    html += fmt::format("<div><dt>{}</dt><dd>{}", escape_html(text_of(entry, "label")),
                        escape_html(text_of(entry, "value")));
    const std::string detail = text_of(entry, "detail");
    if (!detail.empty()) html += fmt::format("<small>{}</small>", escape_html(detail));
    html += "</dd></div>\n";
  }
  return html + "</dl>\n";
}

/// Throws where the script would draw nothing, or something else.
void check_chart(const json& chart, const std::string& title) {
  for (const json& line : list_of(chart, "lines"))
    for (const json& point : list_of(line, "points"))
      if (!point.is_array() || point.size() < 2 || point.size() > 3 ||
          !std::all_of(point.begin(), point.end(), [](const json& value) { return value.is_number(); }))
        throw Error("page document: a point of figure '{}' is not [x, y] or [x, y, half of its interval]: {}", title,
                    point.dump());
}

/// The curves of figures, which the script draws with values on hover; their pictures are then for paper.
std::string chart_data(const json& charts) {
  if (charts.empty() || kChartLibrary.empty()) return "";
  return fmt::format("<script type=\"application/json\" id=\"charts-data\">{}</script>\n", json_for_script(charts));
}

std::string render_figures(const json& figures, Names& names) {
  std::vector<std::string> entries;
  json charts = json::array();
  for (const json& figure : figures) {
    const std::string id = names.unique("figure", figure), title = text_of(figure, "title");
    std::string picture = inline_svg(text_of(figure, "svg"), id + "-", title);
    if (!picture.empty()) picture = fmt::format("<div class=\"picture\">{}</div>\n", picture);
    if (const auto chart = figure.find("chart"); chart != figure.end() && chart->is_object()) {
      check_chart(*chart, title);
      picture += fmt::format("<div class=\"chart\" data-chart=\"{}\"></div>\n", charts.size());
      charts.push_back(*chart);
    } else if (picture.empty()) {
      picture = "<p class=\"none\">This figure holds no SVG.</p>\n";
    }
    std::string html =
        fmt::format("<figure class=\"card\" id=\"{}\">\n<h3>{}</h3>\n{}", id, escape_html(title), picture);
    const std::string caption = text_of(figure, "caption");
    if (!caption.empty()) html += fmt::format("<figcaption class=\"caption\">{}</figcaption>\n", escape_html(caption));
    entries.push_back(html + "</figure>\n");
  }
  return fold(entries, kMostFigures, "figures",
              [](const std::string& list) { return "<div class=\"figures\">\n" + list + "</div>\n"; }) +
         chart_data(charts);
}

std::string render_tables(const json& tables, Names& names) {
  std::string html;
  for (const json& table : tables) html += render_table(table, names.unique("table", table));
  return html;
}

/// Throws where the script would show nothing, or something else.
void check_timeline(const json& timeline) {
  const std::string title = text_of(timeline, "title");
  const std::size_t lanes = list_of(timeline, "lanes").size();
  for (const json& event : list_of(timeline, "events")) {
    const auto is_number = [&](const char* key) { return event.contains(key) && event.at(key).is_number(); };
    if (!event.is_object() || !is_number("lane") || !event.at("lane").is_number_integer() || !is_number("begin_us") ||
        !is_number("end_us"))
      throw Error("page document: an event of timeline '{}' lacks lane, begin_us or end_us: {}", title, event.dump());
    if (event.at("lane") < 0 || event.at("lane") >= lanes)
      throw Error("page document: an event of timeline '{}' is in lane {} of {}", title, event.at("lane").dump(),
                  lanes);
  }
}

/// Places that the script fills; the events travel as JSON.
std::string render_timelines(const json& timelines, Names& names) {
  std::string html;
  for (std::size_t index = 0; index < timelines.size(); ++index) {
    const json& timeline = timelines[index];
    check_timeline(timeline);
    const std::string id = names.unique("timeline", timeline);
    html += fmt::format(
        "<section class=\"card timeline\" id=\"{0}\" data-timeline=\"{1}\" aria-labelledby=\"{0}-title\">\n", id,
        index);
    const std::string source = text_of(timeline, "source"), caption = text_of(timeline, "caption");
    html += fmt::format("<h3 id=\"{}-title\">{}", id, escape_html(text_of(timeline, "title")));
    if (!source.empty())
      html += fmt::format(" <span class=\"tag tag-{}\">{}</span>", slug(source), escape_html(source));
    html += "</h3>\n";
    if (!caption.empty()) html += fmt::format("<p class=\"caption\">{}</p>\n", escape_html(caption));
    html +=
        "<noscript><p>The timeline is drawn by the page's script, which this browser does not "
        "run.</p></noscript>\n</section>\n";
  }
  if (html.empty()) return html;
  return html + fmt::format("<script type=\"application/json\" id=\"timelines-data\">{}</script>\n",
                            json_for_script(timelines));
}

/// Nested objects are listed as "outer inner", lists on one line.
void list_environment(const json& value, const std::string& name, std::string& html) {
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items())
      list_environment(inner, name.empty() ? key : fmt::format("{} {}", name, key), html);
    return;
  }
  const auto words = [](const json& entry) { return entry.is_string() ? entry.get<std::string>() : entry.dump(); };
  std::string text;
  if (value.is_array()) {
    for (const json& entry : value) {
      if (!text.empty()) text += ", ";
      text += words(entry);
    }
  } else {
    text = words(value);
  }
  html += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escape_html(name), escape_html(text));
}

std::string render_environment(const json& document) {
  const auto found = document.find("environment");
  if (found == document.end() || found->empty()) return "";
  std::string html;
  list_environment(*found, "", html);
  return "<dl class=\"card environment\">\n" + html + "</dl>\n";
}

std::string render_command(const std::string& command) {
  if (command.empty()) return "";
  return fmt::format(
      "<div class=\"command\"><span class=\"command-label\" id=\"command-label\">Repeat it</span>"
      "<pre tabindex=\"0\" aria-labelledby=\"command-label\"><code>{}</code></pre></div>\n",
      escape_html(command));
}

/// The title stands once, in the heading below it.
std::string render_bar(const std::vector<Section>& sections) {
  std::string links;
  for (const Section& section : sections) links += fmt::format("<a href=\"#{}\">{}</a>", section.id, section.title);
  return fmt::format(
      "<a class=\"skip\" href=\"#content\">Skip to the content</a>\n<header class=\"bar\"><div class=\"bar-inside\">"
      "<a class=\"bar-title\" href=\"#content\">Tutti</a><nav aria-label=\"Parts of this "
      "page\">{}</nav></div></header>\n",
      links);
}

/// The scripts that may run: ours and Chart.js, if it is there.
std::string allowed_scripts() {
  std::string text = fmt::format("'{}'", policy_digest(kPageScript));
  if (!kChartLibrary.empty()) text += fmt::format(" '{}'", policy_digest(kChartLibrary));
  return text;
}

std::string render_head(const std::string& title) {
  // The policy is what makes "no network access" certain, and runs no script but ours, whatever else is in the page.
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src "
      "'unsafe-inline'; "
      "script-src {}; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" "
      "content=\"light dark\">\n"
      "<meta name=\"generator\" content=\"Tutti\">\n<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n",
      allowed_scripts(), escape_html(title), kPageStyle);
}

}  // namespace

std::string render_page(const json& document) {
  if (!document.is_object()) throw Error("page document: it is not an object");
  std::string title = text_of(document, "title");
  if (title.empty()) title = "Tutti report";
  Names names;
  std::vector<Section> sections;
  const auto add = [&](const char* id, const char* heading, std::string content) {
    if (!content.empty()) sections.push_back({id, heading, std::move(content)});
  };
  add("figures", "Figures", render_figures(list_of(document, "figures"), names));
  add("tables", "Tables", render_tables(list_of(document, "tables"), names));
  add("timelines", "Timeline", render_timelines(list_of(document, "timelines"), names));
  add("environment", "Environment", render_environment(document));

  std::string html = render_head(title) + render_bar(sections);
  html += fmt::format("<main id=\"content\" tabindex=\"-1\">\n<div class=\"hero\">\n<h1>{}</h1>\n", escape_html(title));
  const std::string subtitle = text_of(document, "subtitle");
  if (!subtitle.empty()) html += fmt::format("<p class=\"subtitle\">{}</p>\n", escape_html(subtitle));
  html += render_command(text_of(document, "command")) + "</div>\n";
  html += render_highlights(list_of(document, "highlights")) + render_notes(list_of(document, "notes"));
  for (const Section& section : sections)
    html += fmt::format("<section class=\"part\" aria-labelledby=\"{0}\">\n<h2 id=\"{0}\">{1}</h2>\n{2}</section>\n",
                        section.id, section.title, section.content);
  if (sections.empty()) html += "<p class=\"none\">There is nothing to show yet.</p>\n";
  html += "</main>\n<footer>";
  const std::string generated = text_of(document, "generated");
  html += escape_html(generated.empty() ? "Made by Tutti." : generated);
  html += "</footer>\n";
  // Large: only where something is drawn with it.
  if (html.find("id=\"charts-data\"") != std::string::npos) {
    html += "<script>";
    html += kChartLibrary;
    html += "</script>\n";
  }
  html += "<script>";
  html += kPageScript;
  html += "</script>\n</body>\n</html>\n";
  // Once for all texts: names of hosts and files need not be UTF-8.
  return valid_utf8(std::move(html));
}

}  // namespace tutti
