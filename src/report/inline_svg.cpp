#include "report/inline_svg.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>
#include <vector>

#include "report/html.h"

namespace tutti {
namespace {

// What gnuplot and its like draw with. Whatever is not listed is left out, so nothing has to be recognized as harmful.
const std::set<std::string_view> kElements = {
    "svg",  "g",       "path", "rect", "circle", "ellipse", "line",     "polyline",       "polygon",
    "text", "tspan",   "desc", "defs", "symbol", "use",     "clipPath", "linearGradient", "radialGradient",
    "stop", "pattern", "mask", "image"};
// Left out with everything in them; of other unknown elements the content stays.
const std::set<std::string_view> kDropWhole = {"script", "style", "foreignObject", "title", "metadata"};
const std::set<std::string_view> kAttributes = {"x",
                                                "y",
                                                "x1",
                                                "y1",
                                                "x2",
                                                "y2",
                                                "cx",
                                                "cy",
                                                "r",
                                                "rx",
                                                "ry",
                                                "dx",
                                                "dy",
                                                "d",
                                                "points",
                                                "width",
                                                "height",
                                                "viewBox",
                                                "transform",
                                                "fill",
                                                "fill-opacity",
                                                "fill-rule",
                                                "stroke",
                                                "stroke-width",
                                                "opacity",
                                                "stroke-opacity",
                                                "stroke-dasharray",
                                                "color",
                                                "stroke-linecap",
                                                "stroke-linejoin",
                                                "offset",
                                                "stroke-dashoffset",
                                                "stroke-miterlimit",
                                                "clip-path",
                                                "clip-rule",
                                                "mask",
                                                "stop-color",
                                                "stop-opacity",
                                                "gradientUnits",
                                                "patternUnits",
                                                "gradientTransform",
                                                "patternTransform",
                                                "clipPathUnits",
                                                "text-anchor",
                                                "font-family",
                                                "font-size",
                                                "font-weight",
                                                "font-style",
                                                "letter-spacing",
                                                "baseline-shift",
                                                "dominant-baseline",
                                                "preserveAspectRatio",
                                                "xml:space",
                                                "style",
                                                "id",
                                                "href",
                                                "xlink:href",
                                                "textLength",
                                                "rotate",
                                                "visibility"};

struct Attribute {
  std::string name, value;
};

struct Tag {
  std::string name;
  std::vector<Attribute> attributes;
  bool is_closing = false, is_empty = false;
};

bool starts_with(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

/// Reads one SVG text from front to back.
class Copier {
 public:
  Copier(std::string_view text, std::string prefix, std::string_view label)
      : text_(text), prefix_(std::move(prefix)), label_(label) {}

  std::string copy() {
    at_ = text_.find("<svg");
    if (at_ == std::string_view::npos) return "";
    do {
      if (text_[at_] == '<')
        read_markup();
      else
        read_text();
    } while (at_ < text_.size() && !open_.empty());
    while (!open_.empty()) close();
    return std::move(out_);
  }

 private:
  void skip_past(std::string_view end) {
    const std::size_t found = text_.find(end, at_);
    at_ = found == std::string_view::npos ? text_.size() : found + end.size();
  }

  void read_text() {
    const std::size_t end = std::min(text_.find('<', at_), text_.size());
    if (dropped_.empty()) out_ += text_.substr(at_, end - at_);
    at_ = end;
  }

  void read_markup() {
    const std::string_view rest = text_.substr(at_);
    if (starts_with(rest, "<!--")) return skip_past("-->");
    if (starts_with(rest, "<![CDATA[")) return skip_past("]]>");
    if (starts_with(rest, "<!") || starts_with(rest, "<?")) return skip_past(">");
    const Tag tag = read_tag();
    if (!dropped_.empty()) {
      if (tag.name == dropped_ && tag.is_closing) dropped_.clear();
    } else if (kDropWhole.count(tag.name) > 0) {
      if (!tag.is_empty && !tag.is_closing) dropped_ = tag.name;
    } else if (kElements.count(tag.name) > 0) {
      write(tag);
    }
  }

  static bool is_name_character(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == ':' || c == '-' || c == '_' || c == '.';
  }
  bool is_at(char c) const { return at_ < text_.size() && text_[at_] == c; }
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  std::string read_name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  Tag read_tag() {
    Tag tag;
    ++at_;
    if (is_at('/')) {
      tag.is_closing = true;
      ++at_;
    }
    tag.name = read_name();
    while (true) {
      skip_space();
      if (at_ >= text_.size()) break;
      if (is_at('>')) {
        ++at_;
        break;
      }
      tag.is_empty = is_at('/');
      const std::string name = read_name();
      if (name.empty()) {
        ++at_;
        continue;
      }
      skip_space();
      if (is_at('=')) tag.attributes.push_back({name, read_value()});
    }
    return tag;
  }

  std::string read_value() {
    ++at_;
    skip_space();
    if (!is_at('"') && !is_at('\'')) return "";
    const char quote = text_[at_++];
    const std::size_t begin = at_, end = std::min(text_.find(quote, at_), text_.size());
    at_ = std::min(end + 1, text_.size());
    return std::string(text_.substr(begin, end - begin));
  }

  /// The value as it may stand in the page; empty leaves the attribute out.
  std::string safe_value(const Tag& tag, const Attribute& attribute) const {
    const std::string& value = attribute.value;
    if (attribute.name == "id") return prefix_ + value;
    if (attribute.name == "href" || attribute.name == "xlink:href") {
      if (starts_with(value, "#")) return "#" + prefix_ + value.substr(1);
      return tag.name == "image" && starts_with(value, "data:image/png;base64,") ? value : "";
    }
    // References into the same figure are fine, all others are not; nor is what could hide one.
    if (value.find('\\') != std::string::npos || (attribute.name == "style" && value.find('&') != std::string::npos))
      return "";
    std::string safe;
    std::size_t from = 0;
    for (std::size_t at; (at = value.find('(', from)) != std::string::npos; from = at + 1) {
      safe += value.substr(from, at + 1 - from);
      const bool is_url = at >= 3 && value.compare(at - 3, 3, "url") == 0;
      if (is_url && value.compare(at + 1, 1, "#") == 0) {
        safe += "#" + prefix_;
        ++at;
      } else if (attribute.name != "transform" && !starts_with_colour(value, at) && !is_number(value, at + 1)) {
        return "";
      }
    }
    return safe + value.substr(from);
  }
  static bool starts_with_colour(const std::string& value, std::size_t bracket) {
    return bracket >= 3 && value.compare(bracket - 3, 3, "rgb") == 0;
  }
  static bool is_number(const std::string& value, std::size_t at) {
    while (at < value.size() && value[at] == ' ') ++at;
    return at < value.size() && (std::isdigit(static_cast<unsigned char>(value[at])) != 0 || value[at] == '-');
  }

  static std::string value_of(const Tag& tag, std::string_view name) {
    for (const Attribute& attribute : tag.attributes)
      if (attribute.name == name) return attribute.value;
    return "";
  }

  void write_attribute(std::string_view name, const std::string& value) {
    out_ += ' ';
    out_ += name;
    out_ += "=\"";
    for (const char c : value) {
      if (c == '"')
        out_ += "&quot;";
      else if (c == '<')
        out_ += "&lt;";
      else if (c != '\0')
        out_ += c;
    }
    out_ += '"';
  }

  /// The root takes the width of its place on the page, so it needs to know its proportions.
  void write_root_size(const Tag& tag) {
    if (value_of(tag, "viewBox").empty()) {
      const auto number = [](const std::string& text) { return text.substr(0, text.find_first_not_of("0123456789.")); };
      const std::string width = number(value_of(tag, "width")), height = number(value_of(tag, "height"));
      if (!width.empty() && !height.empty()) write_attribute("viewBox", "0 0 " + width + " " + height);
    }
    out_ += " role=\"img\" aria-label=\"" + escape_html(label_) + "\"";
  }

  void write(const Tag& tag) {
    if (tag.is_closing) {
      // One that closes nothing, or not what is open, would break out of the figure.
      if (!open_.empty() && open_.back() == tag.name) close();
      return;
    }
    const bool is_root = open_.empty();
    out_ += '<' + tag.name;
    if (is_root) write_root_size(tag);
    for (const Attribute& attribute : tag.attributes) {
      if (kAttributes.count(attribute.name) == 0) continue;
      if (is_root && (attribute.name == "width" || attribute.name == "height" || attribute.name == "style")) continue;
      const std::string value = safe_value(tag, attribute);
      if (!value.empty()) write_attribute(attribute.name == "xlink:href" ? "href" : attribute.name, value);
    }
    if (tag.is_empty) {
      out_ += "/>";
    } else {
      out_ += '>';
      open_.push_back(tag.name);
    }
  }

  void close() {
    out_ += "</" + open_.back() + '>';
    open_.pop_back();
  }

  const std::string_view text_;
  const std::string prefix_;
  const std::string_view label_;
  std::size_t at_ = 0;
  std::string out_, dropped_;  // the element that is being left out with its content
  std::vector<std::string> open_;
};

}  // namespace

std::string inline_svg(std::string_view svg, const std::string& prefix, std::string_view label) {
  return Copier(svg, prefix, label).copy();
}

}  // namespace tutti
