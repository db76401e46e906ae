// page_picture PAGE.html|http://127.0.0.1:PORT/… PICTURE.png|.pdf [dark] [phone] [whole] [WIDTHxHEIGHT]: what a page
// looks like, or prints like.
#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>

#include "support/browser.h"

int main(int count, char** words) try {
  if (count < 3)
    throw std::runtime_error("usage: page_picture PAGE.html PICTURE.png|.pdf [dark] [phone] [whole] [WIDTHxHEIGHT]");
  tutti::Browser::Look look;
  bool is_whole = false;
  for (int i = 3; i < count; ++i) {
    const std::string word = words[i];
    if (word == "dark") {
      look.is_dark = true;
    } else if (word == "phone") {
      look = {390, 844, look.is_dark, true};
    } else if (word == "whole") {
      is_whole = true;
    } else if (std::sscanf(word.c_str(), "%dx%d", &look.width, &look.height) != 2) {  // NOLINT(cert-err34-c)
      throw std::runtime_error("unknown word: " + word);
    }
  }
  const std::string reason = tutti::Browser::why_not(), picture = words[2];
  if (!reason.empty()) throw std::runtime_error(reason);
  tutti::Browser browser;
  browser.look_as(look);
  const std::string page = words[1];
  if (page.rfind("http://", 0) == 0)
    browser.open_url(page);
  else
    browser.open(page);
  // Its scripts have run; that of `tutti watch` has asked for what it shows.
  browser.evaluate(
      "new Promise(done => { const look = () => document.documentElement.dataset.ready ? setTimeout(done, 500, 1) : "
      "setTimeout(look, 50); look(); })");
  for (const std::string& complaint : browser.complaints()) std::cerr << complaint << '\n';
  if (picture.size() > 4 && picture.substr(picture.size() - 4) == ".pdf")
    browser.print(picture);
  else
    browser.take_picture(picture, is_whole);
  return 0;
} catch (const std::exception& error) {
  std::cerr << "page_picture: " << error.what() << '\n';
  return 1;
}
