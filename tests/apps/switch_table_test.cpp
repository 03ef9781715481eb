/// The table of switches, beside the document and the help that show it.

#include "tessera/apps/switch_table.h"

#include <gtest/gtest.h>

#include <set>

#include "apps/command_test.h"
#include "repo_file.h"

namespace tessera {
namespace {

/// With TESSERA_ACCEPT the document is rewritten instead.
TEST(SwitchTable, IsThatOfTheDocument) {
  const std::string path = repo_file("docs/guides/memory.md"), head = "| name | flags |";
  const std::string shown = read(path);
  const std::size_t begin = shown.find(head), end = shown.find("\n\n", begin) + 1;
  ASSERT_NE(begin, std::string::npos) << path;
  if (std::getenv("TESSERA_ACCEPT") != nullptr)
    std::ofstream(path) << shown.substr(0, begin) << switches_markdown() << shown.substr(end);
  EXPECT_EQ(shown.substr(begin, end - begin), switches_markdown());
}

TEST(SwitchTable, HasEachNameOnceAndOnlyItsOwnNeeds) {
  std::set<std::string> names = {""};
  for (const SwitchRow& row : switch_table())
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
  for (const SwitchRow& row : switch_table()) {
    for (const std::string& name : split(row.needs, ' '))
      EXPECT_TRUE(names.contains(name)) << row.name;
    EXPECT_EQ(row.value[0] == '\0', row.sample[0] == '\0') << row.name;
  }
}

/// Two blanks, at least, are between a name and its flags: pages are made from this form.
TEST(SwitchTable, BenchPrintsShortNames) {
  const std::string help = run(words("bench --help")).out;
  for (const SwitchRow& row : switch_table()) {
    if (row.flags == text("--", row.name)) continue;
    const std::size_t at =
        help.find(text("\n  ", row.name, row.value[0] == '\0' ? "" : "=", row.value, "  "));
    EXPECT_NE(at, std::string::npos) << row.name;
  }
}

TEST(SwitchTable, IsPrintedByHelp) {
  const Ran ran = run(words("help switches"));
  EXPECT_EQ(ran.code, 0);
  for (const SwitchRow& row : switch_table())
    EXPECT_NE(ran.out.find(text(row.name, "\n    ", flags_text(row))), std::string::npos)
        << row.name;
  EXPECT_NE(ran.out.find("losses     within 1e-05: sums in another order"), std::string::npos)
      << ran.out;
}

}  // namespace
}  // namespace tessera
