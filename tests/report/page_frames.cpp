// page_frames PAGE.html: how long a browser takes for a frame while a page's first timeline is zoomed and moved.
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "support/browser.h"

int main(int count, char** words) try {
  if (count != 2) throw std::runtime_error("usage: page_frames PAGE.html");
  const std::string reason = tutti::Browser::why_not();
  if (!reason.empty()) throw std::runtime_error(reason);
  tutti::Browser browser;
  browser.look_as({});
  browser.open(words[1]);
  const nlohmann::json times = browser.evaluate(R"((async () => {
    const canvas = document.querySelector('.timeline canvas');
    canvas.scrollIntoView();
    const frame = () => new Promise(done => requestAnimationFrame(done));
    const times = [];
    await frame();
    for (let i = 0; i < 100; ++i) {
      canvas.dispatchEvent(new KeyboardEvent('keydown', {key: i < 20 ? '+' : i < 80 ? 'ArrowRight' : '-'}));
      const begin = performance.now();
      await frame();
      times.push(performance.now() - begin);
    }
    return times.sort((a, b) => a - b);
  })())");
  fmt::print("100 frames: median {:.1f} ms, 95 of them within {:.1f} ms\n", times.at(50).get<double>(),
             times.at(94).get<double>());
  return 0;
} catch (const std::exception& error) {
  std::cerr << "page_frames: " << error.what() << '\n';
  return 1;
}
