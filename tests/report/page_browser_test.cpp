// The page as a person meets it: in a browser, with mouse, keyboard, phone and printer. Skipped without Chromium.
// Pictures of it are left beside this program, in pictures/.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "base/files.h"
#include "report/page.h"
#include "report/sample_document.h"
#include "support/browser.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class PageInBrowser : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!Browser::why_not().empty()) return;
    make_folders(pictures());
    write_file_atomically(page(), render_page(sample_document()));
    browser_ = std::make_unique<Browser>();
  }
  static void TearDownTestSuite() { browser_.reset(); }

  void SetUp() override {
    const std::string reason = Browser::why_not();
    if (!reason.empty()) GTEST_SKIP() << reason;
    browser_->look_as({});
    browser_->open(page());
  }
  void TearDown() override {
    if (!browser_) return;
    EXPECT_EQ(browser_->requests(), std::vector<std::string>());
    EXPECT_EQ(browser_->complaints(), std::vector<std::string>());
  }

  static fs::path pictures() { return TUTTI_PICTURES; }
  static fs::path page() { return pictures() / "sample.html"; }
  static Browser& browser() { return *browser_; }

  /// The middle of an element on the screen, once it is there.
  static std::pair<double, double> find(const std::string& selector) {
    const json place = browser_->evaluate(
        "(() => { const e = document.querySelector(" + json(selector).dump() +
        "); e.scrollIntoView({block: 'center', behavior: 'instant'}); const b = e.getBoundingClientRect();"
        "return [b.left + b.width / 2, b.top + b.height / 2]; })()");
    return {place.at(0), place.at(1)};
  }
  static void click(const std::string& selector) {
    const auto [x, y] = find(selector);
    browser_->click(x, y);
  }
  /// The texts of a column of the only table, top down.
  static std::vector<std::string> column(int number) {
    return browser_->evaluate("[...document.querySelectorAll('tbody td:nth-child(" + std::to_string(number) +
                              ")')].map(cell => cell.textContent)");
  }
  static std::string text(const std::string& selector) {
    return browser_->evaluate("document.querySelector(" + json(selector).dump() + ").textContent");
  }
  static json attribute(const std::string& selector, const std::string& name) {
    return browser_->evaluate("document.querySelector(" + json(selector).dump() + ").getAttribute('" + name + "')");
  }
  /// The next frame is drawn: what was asked for is on the screen.
  static void settle() {
    browser_->evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))");
  }
  /// A number that changes with what the first timeline shows.
  static json timeline_picture() {
    browser_->move_mouse(10, 10);
    settle();
    return browser_->evaluate(
        "[...document.querySelector('.timeline canvas').toDataURL()].reduce((h, c) => (h * 31 + c.charCodeAt(0)) % "
        "1000000007, 7)");
  }
  static bool is_wider_than_the_screen() {
    return browser_->evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth");
  }

 private:
  inline static std::unique_ptr<Browser> browser_;
};

std::vector<double> leading_numbers(const std::vector<std::string>& texts) {
  std::vector<double> numbers;
  numbers.reserve(texts.size());
  for (const std::string& text : texts) numbers.push_back(std::stod(text));
  return numbers;
}

TEST_F(PageInBrowser, SortsByValueOnClickAndGoesBackOnTheThird) {
  const std::vector<std::string> before = column(1);
  ASSERT_EQ(before.size(), 42u);
  click("th:nth-child(4) button");
  EXPECT_EQ(attribute("th:nth-child(4)", "aria-sort"), "ascending");
  std::vector<std::string> throughput = column(4);
  // The cell that failed has no value: it is last whichever way.
  EXPECT_EQ(throughput.back().rfind("failed", 0), 0u) << throughput.back();
  throughput.pop_back();
  std::vector<double> numbers = leading_numbers(throughput);
  EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
  EXPECT_EQ(throughput.front(), "252.6 ± 1.0");
  click("th:nth-child(4) button");
  throughput = column(4);
  EXPECT_EQ(attribute("th:nth-child(4)", "aria-sort"), "descending");
  EXPECT_EQ(throughput.front(), "1033.2 ± 14.0");
  EXPECT_EQ(throughput.back().rfind("failed", 0), 0u);
  click("th:nth-child(4) button");
  EXPECT_EQ(column(1), before);
}

TEST_F(PageInBrowser, SortsTextsAsPeopleCount) {
  click("th:nth-child(2) button");
  const std::vector<std::string> networks = column(2);
  EXPECT_EQ(networks.front(), "1GbE");
  EXPECT_EQ(networks.at(20), "10GbE");
  EXPECT_EQ(networks.back(), "100GbIB");
}

TEST_F(PageInBrowser, FiltersByValuesAndWords) {
  click(".menu:nth-of-type(1) summary");
  click("input[value=dear]");
  EXPECT_EQ(column(1), std::vector<std::string>(6, "dear"));
  EXPECT_EQ(text(".row-count"), "6 of 42 rows");
  click("input[value=bsp]");
  EXPECT_EQ(column(1).size(), 12u);
  browser().press("Escape");
  EXPECT_EQ(attribute(".menu:nth-of-type(1)", "open"), nullptr);
  click(".controls input[type=search]");
  browser().type("10gbe simulated");
  EXPECT_EQ(text("tbody"), "No row matches.");
  browser().evaluate("document.querySelector('input[type=search]').value = ''");
  click(".controls input[type=search]");
  browser().type("10gbe dear");
  EXPECT_EQ(column(2), (std::vector<std::string>{"10GbE", "10GbE"}));
  settle();
  browser().take_picture(pictures() / "filtered.png");
  click(".controls .quiet");
  EXPECT_EQ(column(1).size(), 42u);
  EXPECT_EQ(text(".row-count"), "42 rows");
}

TEST_F(PageInBrowser, LeavesOutColumnsThatNobodyAskedFor) {
  click(".menu:last-of-type summary");
  click(".menu:last-of-type input[value=Step]");
  EXPECT_EQ(browser().evaluate("document.querySelector('th:nth-child(6)').offsetParent"), nullptr);
  EXPECT_EQ(browser().evaluate("[...document.querySelectorAll('td:nth-child(6)')].every(cell => cell.hidden)"), true);
  // What is copied is what is shown.
  browser().evaluate("navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve(); }");
  click(".controls .row-count + .button");
  EXPECT_EQ(browser().evaluate("window.copied.split('\\n').slice(0, 2)"),
            json({"Strategy\tNetwork\tRanks\tSamples/s\tEfficiency\tRun time\tSource",
                  "bsp\t1GbE\t2\t252.6 ± 1.0\t48.0 %\t1:09:27\tmeasured"}));
}

TEST_F(PageInBrowser, EnlargesFigures) {
  click("#figure-throughput .enlarge");
  EXPECT_EQ(text("dialog[open] h3"), "Throughput against ranks");
  EXPECT_GT(browser().evaluate("document.querySelector('dialog svg').getBoundingClientRect().width"), 900);
  settle();
  browser().take_picture(pictures() / "enlarged.png");
  browser().press("Escape");
  EXPECT_EQ(browser().evaluate("document.querySelector('dialog').open"), false);
}

TEST_F(PageInBrowser, IsUsedByKeyboardAlone) {
  const auto focused = [] {
    return browser()
        .evaluate(
            "(e => e === document.body ? '' : e.getAttribute('aria-label') || e.textContent)(document.activeElement)")
        .get<std::string>();
  };
  std::vector<std::string> path;
  browser().evaluate("document.body.focus()");
  for (int i = 0; i < 60 && focused().find("Arrow keys") == std::string::npos; ++i) {
    browser().press("Tab");
    path.push_back(focused());
    if (path.back() == "Efficiency") browser().press("Enter");
    // Whoever goes by keyboard sees where they are.
    EXPECT_NE(browser().evaluate("getComputedStyle(document.activeElement).outlineStyle"), "none") << path.back();
  }
  for (const char* stop :
       {"Skip to the content", "Tables", "Search in Samples per second", "Strategy", "Efficiency", "Zoom in"})
    EXPECT_NE(std::find(path.begin(), path.end(), stop), path.end()) << stop;
  EXPECT_EQ(attribute("th:nth-child(5)", "aria-sort"), "ascending");
  EXPECT_EQ(column(5).front(), "32.4 %");
  // Now in the timeline: the first event, the next ones, the lane below.
  browser().press("n");
  EXPECT_NE(text(".tip").find("step 21"), std::string::npos);
  browser().press("n");
  browser().press("n");
  EXPECT_EQ(text(".tip strong"), "forward");
  EXPECT_NE(text(".timeline [role=status]").find("forward, rank 0, compute, begins at"), std::string::npos);
  browser().press("ArrowDown");
  EXPECT_EQ(text(".tip strong").rfind("all_reduce layer4", 0), 0u) << text(".tip strong");
  browser().press("+");
  browser().press("ArrowRight");
  settle();
  browser().take_picture(pictures() / "keyboard.png");
  browser().press("Escape");
  EXPECT_NE(attribute(".tip", "hidden"), nullptr);
}

TEST_F(PageInBrowser, TellsWhatIsUnderTheMouseInATimeline) {
  find(".timeline canvas");
  const json box = browser().evaluate(
      "(() => { const b = document.querySelector('.timeline canvas').getBoundingClientRect(); return [b.left, b.top, "
      "b.width, b.height]; })()");
  const double left = box.at(0), top = box.at(1), width = box.at(2);
  EXPECT_NE(attribute(".tip", "hidden"), nullptr);
  // Along the second row of the first lane: forward, backward and what follows them.
  std::vector<std::string> met;
  for (double x = left + 140; x < left + width; x += 6) {
    browser().move_mouse(x, top + 28 + 30);
    if (attribute(".tip", "hidden") != nullptr) continue;
    const std::string name = text(".tip strong");
    if (met.empty() || met.back() != name) met.push_back(name);
  }
  EXPECT_EQ(met, (std::vector<std::string>{"data wait", "forward", "backward", "wait for communication", "optimizer"}));
  // A transfer, with what it carries.
  browser().move_mouse(left + 0.6 * width, top + 28 + 70);
  const std::string tip = text(".tip");
  for (const char* part :
       {"all_reduce layer", "transfer", "begins at", "takes", "rank 0, communication", "KiB", "could have started"})
    EXPECT_NE(tip.find(part), std::string::npos) << part << " in " << tip;
  settle();
  browser().take_picture(pictures() / "timeline.png");
  browser().move_mouse(left + 0.6 * width, top - 40);
  EXPECT_NE(attribute(".tip", "hidden"), nullptr);
}

TEST_F(PageInBrowser, ZoomsATimelineByWheelOnlyWhereItWasClicked) {
  const auto [x, y] = find(".timeline canvas");
  browser().evaluate("window.scrollBy(0, -60)");
  const double at = y + 60;
  browser().evaluate("document.activeElement.blur()");
  const json before = timeline_picture();
  browser().turn_wheel(x, at, 40);
  settle();
  EXPECT_EQ(timeline_picture(), before) << "the wheel scrolls the page";
  const auto [x2, y2] = find(".timeline canvas");
  browser().click(x2, y2);
  browser().turn_wheel(x2, y2, -400);
  const json zoomed = timeline_picture();
  EXPECT_NE(zoomed, before);
  click(".timeline [aria-label='Show the whole step']");
  EXPECT_EQ(timeline_picture(), before);
}

TEST_F(PageInBrowser, MovesATimelineByDraggingAndZoomsItByPinching) {
  click(".timeline [aria-label='Zoom in']");
  auto [x, y] = find(".timeline canvas");
  const json zoomed = timeline_picture();
  browser().drag(x, y, x - 150, y);
  EXPECT_NE(timeline_picture(), zoomed);
  browser().drag(x - 150, y, x, y);
  EXPECT_EQ(timeline_picture(), zoomed);

  browser().look_as({390, 844, false, true});
  browser().open(page());
  std::tie(x, y) = find(".timeline canvas");
  const json whole = timeline_picture();
  browser().pinch(x + 30, y, 60, 180);
  const json close = timeline_picture();
  EXPECT_NE(close, whole);
  browser().pinch(x + 30, y, 200, 20);
  EXPECT_NE(timeline_picture(), close);
}

TEST_F(PageInBrowser, HidesKindsOfEventsThatNobodyAskedFor) {
  const json box = browser().evaluate(
      "(() => { const c = document.querySelector('.timeline canvas'); c.scrollIntoView({block: 'center', behavior: "
      "'instant'}); const b = c.getBoundingClientRect(); return [b.left, b.top, b.width]; })()");
  const double x = box.at(0).get<double>() + 0.6 * box.at(2).get<double>();
  click(".legend-button:last-child");
  EXPECT_EQ(attribute(".legend-button:last-child", "aria-pressed"), "false");
  const double top = browser().evaluate("document.querySelector('.timeline canvas').getBoundingClientRect().top");
  browser().move_mouse(x, top + 28 + 70);
  EXPECT_NE(attribute(".tip", "hidden"), nullptr);
}

TEST_F(PageInBrowser, IsDarkWhereTheSystemIsOrTheButtonSays) {
  const auto brightness = [] {
    return browser().evaluate(
        "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + Number(b), "
        "0)");
  };
  EXPECT_GT(brightness(), 700);
  settle();
  browser().take_picture(pictures() / "light.png", true);
  click(".theme-button");
  EXPECT_LT(brightness(), 120);
  click(".theme-button");
  browser().evaluate("localStorage.clear()");
  Browser::Look night;
  night.is_dark = true;
  browser().look_as(night);
  browser().open(page());
  EXPECT_LT(brightness(), 120);
  settle();
  browser().take_picture(pictures() / "dark.png", true);
}

TEST_F(PageInBrowser, FitsAPhone) {
  EXPECT_FALSE(is_wider_than_the_screen());
  browser().look_as({390, 844, false, true});
  browser().open(page());
  settle();
  EXPECT_EQ(browser().evaluate("document.documentElement.clientWidth"), 390);
  EXPECT_FALSE(is_wider_than_the_screen());
  // The table is wider than its place, and scrolls there.
  EXPECT_TRUE(browser().evaluate(
      "(() => { const s = document.querySelector('.scroll'); return s.scrollWidth > s.clientWidth; })()"));
  browser().take_picture(pictures() / "phone.png", true);
}

TEST_F(PageInBrowser, PrintsEveryRowAndNoControls) {
  browser().call("Emulation.setEmulatedMedia", {{"media", "print"}});
  EXPECT_EQ(browser().evaluate(
                "document.querySelector('.scroll').clientHeight >= document.querySelector('table').clientHeight"),
            true);
  for (const char* control : {".bar", ".controls input", ".theme-button", ".command .button", ".tools", ".hint"})
    EXPECT_EQ(browser().evaluate("document.querySelector(" + json(control).dump() + ").offsetParent"), nullptr)
        << control;
  browser().call("Emulation.setEmulatedMedia", {{"media", ""}});
  browser().print(pictures() / "printed.pdf");
  EXPECT_GT(fs::file_size(pictures() / "printed.pdf"), 10'000u);
}

TEST_F(PageInBrowser, CopiesTheCommand) {
  browser().evaluate("navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve(); }");
  click(".command button");
  EXPECT_EQ(text(".command button"), "Copied");
  EXPECT_EQ(browser().evaluate("window.copied"), sample_document().at("command"));
}

TEST_F(PageInBrowser, DrawsCurvesWithValuesUnderTheMouse) {
  json document = sample_document();
  document["figures"][0]["chart"] = {
      {"x_label", "ranks"},
      {"y_label", "samples/s"},
      {"x_is_log", true},
      {"y_is_log", true},
      {"x_marks", {1, 2, 4, 8}},
      {"lines",
       {{{"name", "<b>dear</b>"}, {"points", {{1, 100, 5}, {2, 190, 6}, {4, 350, 9}, {8, 640, 20}}}},
        {{"name", "ideal"}, {"is_dashed", true}, {"points", {{1, 100}, {8, 800}}}}}}};
  const fs::path file = pictures() / "curves.html";
  write_file_atomically(file, render_page(document));
  browser().open(file);
  if (browser().evaluate("typeof Chart === 'undefined'") == true) GTEST_SKIP() << "this build has no Chart.js";
  const std::string figure = "document.querySelector('figure.has-chart')";
  const std::string chart = "Chart.getChart(" + figure + ".querySelector('canvas'))";
  EXPECT_EQ(browser().evaluate(figure + ".querySelector('.picture').offsetParent"), nullptr);
  const json place = browser().evaluate(
      "(() => { const c = " + chart +
      "; c.canvas.scrollIntoView({block: 'center', behavior: 'instant'}); const b = "
      "c.canvas.getBoundingClientRect(); return [b.left + c.scales.x.getPixelForValue(4), b.top + b.height / 2]; })()");
  browser().move_mouse(place.at(0), place.at(1));
  settle();
  EXPECT_EQ(browser().evaluate(chart + ".tooltip.title[0]"), "4 ranks");
  EXPECT_EQ(browser().evaluate(chart + ".tooltip.body[0].lines[0]"), " <b>dear</b>: 350 ± 9");
  EXPECT_EQ(browser().evaluate(chart + ".tooltip.body.length"), 1) << "the other curve has no point there";
  EXPECT_EQ(browser().evaluate(chart + ".scales.x.ticks.map(tick => tick.label)"), json({"1", "2", "4", "8"}));
  EXPECT_EQ(browser().evaluate("document.querySelectorAll('figure b').length"), 0);
  browser().take_picture(pictures() / "curves.png");
  // On paper there is the picture.
  browser().call("Emulation.setEmulatedMedia", {{"media", "print"}});
  EXPECT_NE(browser().evaluate(figure + ".querySelector('.picture').offsetParent"), nullptr);
  EXPECT_EQ(browser().evaluate(figure + ".querySelector('canvas').offsetParent"), nullptr);
  browser().call("Emulation.setEmulatedMedia", {{"media", ""}});
}

TEST_F(PageInBrowser, ShowsHostileTextsAsTexts) {
  json document = sample_document();
  const std::string hostile = "</script><script>window.hacked = 1</script><img src=x onerror=\"window.hacked = 2\">";
  document["title"] = document["command"] = document["notes"][0] = hostile;
  document["tables"][0]["title"] = document["tables"][0]["rows"][0]["strategy"] = hostile;
  document["environment"][hostile] = hostile;
  document["timelines"][0]["title"] = hostile;
  for (json& event : document["timelines"][0]["events"]) {
    event["name"] = hostile;
    event["details"] = {{hostile, hostile}};
  }
  document["figures"][0]["svg"] =
      "<svg viewBox='0 0 9 9' onload='window.hacked = 3'><script>window.hacked = 4</script>"
      "<rect width='9' height='9'/></svg>" +
      hostile;
  const fs::path file = pictures() / "hostile.html";
  write_file_atomically(file, render_page(document));
  browser().open(file);
  click(".timeline canvas");
  browser().press("n");
  EXPECT_EQ(text(".tip strong"), hostile);
  EXPECT_EQ(text("h1"), hostile);
  EXPECT_EQ(column(1).front(), hostile);
  EXPECT_EQ(browser().evaluate("window.hacked === undefined"), true);
  EXPECT_EQ(browser().evaluate("document.querySelectorAll('img').length"), 0);
}

TEST_F(PageInBrowser, ShowsManyRowsInPortionsAndManyEventsAtOnce) {
  json document = sample_document();
  json& rows = document["tables"][0]["rows"];
  const json sample = rows;
  while (rows.size() < 5000) rows.insert(rows.end(), sample.begin(), sample.end());
  json& events = document["timelines"][0]["events"];
  for (int i = 0; i < 20'000; ++i)
    events.push_back({{"lane", i % 8},
                      {"name", "e" + std::to_string(i)},
                      {"begin_us", i * 1.5},
                      {"end_us", i * 1.5 + 1},
                      {"kind", "transfer"}});
  const fs::path file = pictures() / "large.html";
  write_file_atomically(file, render_page(document));
  browser().open(file);
  EXPECT_EQ(column(1).size(), 300u);
  click("th:nth-child(4) button");
  EXPECT_EQ(column(4).front(), "252.6 ± 1.0");
  EXPECT_EQ(text(".more").rfind("Show 300 more of 50", 0), 0u) << text(".more");
  click(".more");
  EXPECT_EQ(column(1).size(), 600u);
  find(".timeline canvas");
  settle();
  browser().take_picture(pictures() / "large.png");
}

}  // namespace
}  // namespace tutti
