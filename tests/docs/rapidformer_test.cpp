/// docs/from/rapidformer.md lists the flags that `rapidformer --help` leaves out, as the code has
/// them: those that are refused, with what to do.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "repo_file.h"
#include "tessera/apps/flags.h"
#include "tessera/base/text.h"
#include "tessera/rapidformer/flag_table.h"

namespace tessera {
namespace {

constexpr std::string_view kBegin = "<!-- refused -->\n", kEnd = "<!-- end of refused -->";

/// A line for each reason, with all flags that have it.
std::string lists() {
  std::vector<std::string_view> reasons;
  std::map<std::string_view, std::string> refused;
  for (const FlagRow& row : flag_rows()) {
    if (row.kind != FlagKind::Refused) continue;
    if (!refused.contains(row.note)) reasons.push_back(row.note);
    std::string& names = refused[row.note];
    names += text(names.empty() ? "" : ", ", "`--", row.name, "`");
  }
  std::string out = "\n";
  for (const std::string_view reason : reasons)
    wrap(out, text("- ", refused[reason], ": ", reason, "."), 2, 118);
  return out + "\n";
}

TEST(RapidformerPage, ListsTheFlagsThatHelpLeavesOut) {
  const std::string path = repo_file("docs/from/rapidformer.md");
  std::ostringstream bytes;
  bytes << std::ifstream(path).rdbuf();
  const std::string page = bytes.str();
  const std::size_t mark = page.find(kBegin), end = page.find(kEnd);
  ASSERT_NE(mark, std::string::npos);
  const std::size_t begin = mark + kBegin.size();
  ASSERT_LE(begin, end);
  const std::string wanted = lists();
  if (std::getenv("TESSERA_ACCEPT") != nullptr) {
    std::ofstream(path) << page.substr(0, begin) << wanted << page.substr(end);
    return;
  }
  EXPECT_EQ(page.substr(begin, end - begin), wanted)
      << "TESSERA_ACCEPT=1 build/docs_test rewrites it";
}

}  // namespace
}  // namespace tessera
