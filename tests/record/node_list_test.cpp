#include "record/node_list.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

using Names = std::vector<std::string>;

TEST(NodeList, IsWrittenAsSlurmWritesIt) {
  EXPECT_EQ(compress_node_list({"gn03"}), "gn03");
  EXPECT_EQ(compress_node_list({"gn05", "gn02"}), "gn[02,05]");
  EXPECT_EQ(compress_node_list({"gn01", "gn02", "gn03"}), "gn[01-03]");
  EXPECT_EQ(compress_node_list({"gn08", "gn01", "gn07", "gn02"}), "gn[01-02,07-08]");
  EXPECT_EQ(compress_node_list({"lm1", "lm6", "lm1"}), "lm[1,6]");
  EXPECT_EQ(compress_node_list({"n9", "n10"}), "n9,n10");  // other widths are other names to Slurm
  EXPECT_EQ(compress_node_list({"vm"}), "vm");
  EXPECT_EQ(compress_node_list({}), "");
}

TEST(NodeList, IsReadBack) {
  for (const char* list : {"gn03", "gn[02,05]", "gn[01-03]", "gn[01-02,07-08]", "a1,b[2-3],vm"}) {
    const auto names = expand_node_list(list);
    ASSERT_TRUE(names) << list;
    EXPECT_EQ(compress_node_list(*names), list);
  }
  EXPECT_EQ(*expand_node_list("gn[08-10]"), (Names{"gn08", "gn09", "gn10"}));
}

TEST(NodeList, IsRefusedWhereItCannotBeRead) {
  for (const char* list : {"", ",", "gn[03-07-09]", "gn[", "gn]", "gn[3", "[1-2]", "gn[a]", "gn[5-3]",
                           "gn[1-999999999]", "gn[]", "gn[1]x", "gn[[1]]", "gn[1-]"})
    EXPECT_FALSE(expand_node_list(list)) << list;
}

TEST(NodeList, OfMoreNodesThanAClusterHasIsASlip) {
  std::string list = "n[0-60000]";
  for (int i = 0; i < 5000; ++i) list += ",m[0-60000]";
  EXPECT_FALSE(expand_node_list(list));
  EXPECT_EQ(expand_node_list("n[0-9],m[0-9]")->size(), 20U);
}

}  // namespace
}  // namespace tutti
