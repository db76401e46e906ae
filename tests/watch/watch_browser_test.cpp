// The page of `tutti watch` as a person meets it: in a browser, while runs go on. Skipped without Chromium. Pictures of
// it are left beside this program, in pictures/.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "support/browser.h"
#include "watch/sample_run.h"
#include "watch/server.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class WatchPageInBrowser : public testing::Test {
 protected:
  WatchPageInBrowser()
      : runs_("tutti-watch-browser-test"),
        watch_({{}, runs_.folder(), std::chrono::milliseconds(0), std::chrono::milliseconds(0)}) {}

  static void SetUpTestSuite() {
    if (Browser::why_not().empty()) browser_ = std::make_unique<Browser>();
  }
  static void TearDownTestSuite() { browser_.reset(); }

  void SetUp() override {
    if (const std::string reason = Browser::why_not(); !reason.empty()) GTEST_SKIP() << reason;
    if (TUTTI_HAS_SERVER == 0) GTEST_SKIP() << "built without cpp-httplib";
    serve();
    make_folders(pictures());
    browser().look_as({});
    asked_before_ = browser().requests().size();
    complained_before_ = browser().complaints().size();
    for (int step = 10; step <= 400; step += 10) sample("first", step);
    runs_.epoch("first", 1, 200, 0.75);
    runs_.epoch("first", 2, 400, 0.875);
    runs_.finish("first", 400);
  }
  void TearDown() override {
    if (!server_) return;
    for (std::size_t i = asked_before_; i < browser().requests().size(); ++i)
      EXPECT_EQ(browser().requests()[i].rfind("http://127.0.0.1:" + std::to_string(port_) + "/", 0), 0u)
          << browser().requests()[i];
    browser().open_url("about:blank");
  }

  void serve() {
    server_ = std::make_unique<WatchServer>(watch_, WatchServerOptions{"127.0.0.1", port_, kToken});
    port_ = server_->port();
  }
  void sample(const std::string& run, int step) const {
    if (!fs::exists(runs_.records(run))) runs_.begin(run);
    runs_.progress(run, step, 100.0 / (100 + step));
  }
  void open() const { browser().open_url("http://127.0.0.1:" + std::to_string(port_) + "/?token=" + kToken); }

  static Browser& browser() { return *browser_; }
  std::vector<std::string> complaints() const {
    const std::vector<std::string>& all = browser_->complaints();
    return {all.begin() + static_cast<std::ptrdiff_t>(complained_before_), all.end()};
  }
  static fs::path pictures() { return TUTTI_WATCH_PICTURES; }
  /// A page that comes into view again asks at once; that makes waiting short.
  static bool comes_true(const std::string& condition) {
    for (int i = 0; i < 600; ++i) {
      if (browser_->evaluate("document.dispatchEvent(new Event('visibilitychange')); Boolean(" + condition + ")") ==
          true)
        return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }
  static std::string text(const std::string& selector) {
    return browser_->evaluate("document.querySelector(" + json(selector).dump() + ")?.textContent ?? ''");
  }
  /// A JavaScript expression: the chart with this title.
  static std::string chart(const std::string& title) {
    return "Chart.getChart([...document.querySelectorAll('.curve-card')].find(card => "
           "card.querySelector('h3').firstChild.textContent === " +
           json(title).dump() + ").querySelector('canvas'))";
  }
  static bool has_curves() { return browser_->evaluate("typeof Chart !== 'undefined'"); }
  static void click(const std::string& selector) {
    const json place = browser_->evaluate(
        "(() => { const e = document.querySelector(" + json(selector).dump() +
        "); e.scrollIntoView({block: 'center', behavior: 'instant'}); const b = e.getBoundingClientRect();"
        "return [b.left + b.width / 2, b.top + b.height / 2]; })()");
    browser_->click(place.at(0), place.at(1));
  }

  const std::string kToken = "a-token-for-tests";
  SampleRuns runs_;
  Watch watch_;
  std::unique_ptr<WatchServer> server_;
  int port_ = 0;

 private:
  std::size_t asked_before_ = 0, complained_before_ = 0;
  inline static std::unique_ptr<Browser> browser_;
};

TEST_F(WatchPageInBrowser, GrowsWithARunAndOutlivesTheServer) {
  open();
  ASSERT_TRUE(comes_true("document.documentElement.dataset.ready"));
  EXPECT_EQ(browser().evaluate("location.search"), "") << "the token has left the address bar";
  EXPECT_TRUE(comes_true("document.querySelector('.run-state')?.textContent === 'finished'"));
  EXPECT_EQ(text(".run-line").rfind("step 400 of 400, last record", 0), 0u) << text(".run-line");
  EXPECT_NE(text(".run-values").find("test accuracy0.875"), std::string::npos) << text(".run-values");

  runs_.begin("first", 400);  // it is resumed
  sample("first", 410);
  EXPECT_TRUE(comes_true("document.querySelector('.run-line').textContent.startsWith('step 410')"))
      << text(".run-line");
  if (has_curves()) {
    EXPECT_TRUE(comes_true(chart("Loss") + ".data.datasets.some(set => set.data.at(-1).x === 410)"));
    EXPECT_EQ(browser().evaluate(chart("Test accuracy") + ".data.datasets[0].data.map(point => point.y)"),
              json({0.75, 0.875}));
  }
  EXPECT_EQ(complaints(), std::vector<std::string>());

  server_.reset();
  EXPECT_TRUE(comes_true("document.querySelector('.connection').textContent.startsWith('no answer')"));
  sample("first", 420);
  serve();
  EXPECT_TRUE(comes_true("document.querySelector('.connection').textContent === 'connected'"));
  EXPECT_TRUE(comes_true("document.querySelector('.run-line').textContent.startsWith('step 420')"));
}

TEST_F(WatchPageInBrowser, LaysRunsOverEachOtherAndTellsValuesUnderTheMouse) {
  for (int step = 10; step <= 400; step += 10) sample("second", step);
  open();
  ASSERT_TRUE(comes_true("document.querySelectorAll('.menu-list input').length === 2"));
  click(".watch-controls .menu summary");
  browser().evaluate("document.querySelectorAll('.menu-list input:not(:checked)').forEach(box => box.click())");
  ASSERT_TRUE(comes_true("document.querySelectorAll('.run-card').length === 2"));
  EXPECT_TRUE(comes_true("location.hash.includes('run=first') && location.hash.includes('run=second')"));
  browser().press("Escape");
  browser().take_picture(pictures() / "two-runs.png", true);
  if (!has_curves()) GTEST_SKIP() << "this build has no Chart.js";
  ASSERT_TRUE(comes_true(chart("Throughput") + ".data.datasets.length === 2"));

  const json middle = browser().evaluate(
      "(() => { const chart = " + chart("Throughput") +
      "; chart.canvas.scrollIntoView({block: 'center', behavior: 'instant'}); const b = "
      "chart.canvas.getBoundingClientRect(); return [b.left + chart.scales.x.getPixelForValue(200), b.top + b.height / "
      "2]; })()");
  browser().move_mouse(middle.at(0), middle.at(1));
  EXPECT_TRUE(comes_true(chart("Throughput") + ".tooltip.dataPoints?.length === 2"));
  EXPECT_EQ(browser().evaluate(chart("Throughput") + ".tooltip.title[0]"), "step 200");
  EXPECT_EQ(browser().evaluate(chart("Throughput") + ".tooltip.dataPoints.map(point => point.parsed.y)"),
            json({100, 100}));

  // The legend of a chart hides one of its curves, that of a run all of the run's.
  browser().evaluate(
      "[...document.querySelectorAll('.curve-card')].find(card => card.textContent.startsWith('Throughput'))"
      ".querySelector('.legend-button').click()");
  EXPECT_EQ(browser().evaluate(chart("Throughput") + ".data.datasets.map(set => set.hidden)"), json({true, false}));
  click(".run-swatch");
  EXPECT_TRUE(comes_true(chart("Learning rate") + ".data.datasets.length === 1"));
}

TEST_F(WatchPageInBrowser, FitsAPhoneAndTheDark) {
  browser().look_as({390, 844, true, true});
  open();
  ASSERT_TRUE(comes_true("document.querySelector('.run-card')"));
  EXPECT_EQ(browser().evaluate("document.documentElement.scrollWidth"), 390);
  EXPECT_LT(
      browser().evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).reduce((a, b) "
                         "=> a + Number(b), 0)"),
      120);
  browser().take_picture(pictures() / "phone-dark.png", true);
  EXPECT_EQ(complaints(), std::vector<std::string>());
}

TEST_F(WatchPageInBrowser, ShowsWhatItCanWithoutChartJs) {
  browser().call("Network.setBlockedURLs", {{"urls", {"*chart.js"}}});
  open();
  EXPECT_TRUE(comes_true("document.querySelectorAll('.curve-value').length > 3"));
  browser().call("Network.setBlockedURLs", {{"urls", json::array()}});
  EXPECT_EQ(text(".none:not([hidden])").rfind("This build of tutti draws no curves", 0), 0u);
  EXPECT_EQ(text(".run-state"), "finished");
  EXPECT_EQ(text(".run-values").rfind("loss0.2", 0), 0u) << text(".run-values");
}

TEST_F(WatchPageInBrowser, ShowsHostileTextsAsTexts) {
  const std::string hostile = "<img src=x onerror=hacked()><script>hacked()<script>";
  make_folders(runs_.folder() / hostile);
  RunRecord record;
  record.config = config_record({{"model", hostile}, {"data", hostile}}, 1, hostile);
  RecordFile(runs_.records(hostile)).add(record, 1);
  EpochRecord epoch;
  epoch.step = 1;
  epoch.test = TestResults{1, 1, {{hostile, 1}}};
  RecordFile(runs_.records(hostile)).add(epoch, 2);
  write_file_atomically(runs_.folder() / hostile / "trace.json", json({{"traceEvents",
                                                                        {{{"ph", "X"},
                                                                          {"pid", 0},
                                                                          {"tid", 0},
                                                                          {"name", hostile},
                                                                          {"cat", "step"},
                                                                          {"ts", 1},
                                                                          {"dur", 2},
                                                                          {"args", {{"step", 1}}}}}}})
                                                                     .dump());
  fs::last_write_time(runs_.records("first"), fs::file_time_type::clock::now() - std::chrono::hours(1));
  open();
  ASSERT_TRUE(comes_true("document.querySelector('.watch-timeline canvas')"));
  EXPECT_EQ(text(".run-head h2"), hostile);
  EXPECT_EQ(browser().evaluate("document.querySelectorAll('main img, main script').length"), 0);
  EXPECT_EQ(complaints(), std::vector<std::string>());
}

}  // namespace
}  // namespace tutti
