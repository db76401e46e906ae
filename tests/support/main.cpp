// The main function of test programs. Their arguments are test files: plan_test.cpp runs the cases of that file alone.
// So the files of a folder are one program, linked once, and each is a test of its own all the same.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>

namespace {

std::string file_of(const testing::TestInfo& info) {
  const std::string path = info.file();
  return path.substr(path.rfind('/') + 1);
}

// Sets GoogleTest's filter to the cases of `files`; false where these cannot be told from others.
bool choose_cases(int count, char** files) {
  std::map<std::string, std::string> cases;  // file by name
  std::map<std::string, std::string> filters;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& info = *suite.GetTestInfo(j);
      const std::string name = std::string(suite.name()) + "." + info.name();
      const std::string file = file_of(info);
      const auto [other, is_new] = cases.emplace(name, file);
      if (!is_new) {
        std::fprintf(stderr, "%s is a test of %s and of %s\n", name.c_str(), other->second.c_str(), file.c_str());
        return false;
      }
      if (file.find("_test.cpp") == std::string::npos) {
        std::fprintf(stderr, "%s comes from %s: its test has to be a program of its own (ALONE)\n", name.c_str(),
                     file.c_str());
        return false;
      }
      filters[file] += name + ":";
    }
  }
  std::string filter;
  for (int i = 0; i < count; ++i) {
    if (filters.count(files[i]) == 0) {
      std::fprintf(stderr, "there is no test in %s\n", files[i]);
      return false;
    }
    filter += filters[files[i]];
  }
  // A filter that was asked for, by hand or by a death test that starts itself again, is narrower.
  std::string& asked = testing::GTEST_FLAG(filter);
  if (asked.empty() || asked == "*") asked = filter;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (argc > 1 && !choose_cases(argc - 1, argv + 1)) return 1;
  return RUN_ALL_TESTS();
}
