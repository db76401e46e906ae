// page_picture PAGE.html PICTURE.png|.pdf [dark] [phone] [whole] [WIDTHxHEIGHT]: what a page looks like, or prints
// like.
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
  browser.open(words[1]);
  if (picture.size() > 4 && picture.substr(picture.size() - 4) == ".pdf")
    browser.print(picture);
  else
    browser.take_picture(picture, is_whole);
  return 0;
} catch (const std::exception& error) {
  std::cerr << "page_picture: " << error.what() << '\n';
  return 1;
}
