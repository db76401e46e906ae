#include "data/csv.h"
#include "fuzz/fuzz.h"

namespace tutti::fuzz {

static std::string fuzz_csv(std::string_view input) {
  return outcome([&] {
    CsvReader reader(std::string(input), "x");
    for (std::vector<std::string> row; reader.next(row);) {
    }
  });
}

static std::vector<std::string> csv_seeds() {
  return {"a,b\n1,2\n", "\xef\xbb\xbf\"a, b\",c\r\n\"two\nlines\",\"\"\"\"\r\n", "\"", "\"\"", ",", "\r\n", "a;b\n"};
}

static const Target kCsv("csv", fuzz_csv, csv_seeds);

}  // namespace tutti::fuzz
