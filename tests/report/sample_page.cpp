// sample_page [FILE]: writes a page with a bit of everything, to look at and for the browser test.
#include <iostream>

#include "base/files.h"
#include "report/page.h"
#include "report/sample_document.h"

int main(int count, char** words) {
  const std::string page = tutti::render_page(tutti::sample_document());
  if (count < 2) {
    std::cout << page;
    return 0;
  }
  tutti::write_file_atomically(words[1], page);
  return 0;
}
