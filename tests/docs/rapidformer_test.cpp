/// docs/rapidformer.md shows the table of flags as the code has it.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "repo_file.h"
#include "tessera/base/text.h"
#include "tessera/rapidformer/flag_table.h"

namespace tessera {
namespace {

constexpr std::string_view kTableBegin = "|---|---|\n", kTableEnd = "<!-- end of flags -->";

std::string table_of_flags() {
  std::string out;
  for (const FlagRow& row : flag_rows())
    out += text("| `--", row.name, row.takes.empty() ? "" : " ", row.takes, "` | ",
                becomes_text(row), " |\n");
  return out;
}

TEST(RapidformerPage, ShowsEveryFlag) {
  const std::string path = repo_file("docs/rapidformer.md");
  std::ostringstream bytes;
  bytes << std::ifstream(path).rdbuf();
  const std::string page = bytes.str();
  const std::size_t mark = page.find("<!-- flags -->");
  ASSERT_NE(mark, std::string::npos);
  const std::size_t begin = page.find(kTableBegin, mark) + kTableBegin.size(),
                    end = page.find(kTableEnd, mark);
  ASSERT_LE(begin, end);
  const std::string table = table_of_flags();
  if (std::getenv("TESSERA_ACCEPT") != nullptr) {
    std::ofstream(path) << page.substr(0, begin) << table << page.substr(end);
    return;
  }
  EXPECT_EQ(page.substr(begin, end - begin), table)
      << "TESSERA_ACCEPT=1 build/docs_test rewrites it";
}

}  // namespace
}  // namespace tessera
