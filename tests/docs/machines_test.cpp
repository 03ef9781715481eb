/// docs/machines.md shows the machines with a name as the code has them, and explains every key.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "repo_file.h"
#include "tessera/apps/flags.h"
#include "tessera/base/text.h"
#include "tessera/machines/find_machine.h"
#include "tessera/machines/machine_file.h"

namespace tessera {
namespace {

std::string page_of_machines() {
  std::ostringstream bytes;
  bytes << std::ifstream(repo_file("docs/machines.md")).rdbuf();
  return bytes.str();
}

/// Fails where another text stands between the marks; with TESSERA_ACCEPT it is put there.
void expect_between(const std::string& mark, const std::string& wanted) {
  const std::string page = page_of_machines(), first = text("<!-- ", mark, " -->\n");
  const std::size_t begin = page.find(first) + first.size(),
                    end = page.find(text("<!-- end of ", mark, " -->"));
  ASSERT_LE(begin, end);
  if (std::getenv("TESSERA_ACCEPT") != nullptr) {
    std::ofstream(repo_file("docs/machines.md"))
        << page.substr(0, begin) << wanted << page.substr(end);
    return;
  }
  EXPECT_EQ(page.substr(begin, end - begin), wanted)
      << "TESSERA_ACCEPT=1 build/docs_test rewrites it";
}

/// "links.core.bandwidth" -> "90 GB/s", as a machine file has it.
std::map<std::string, std::string> values_of(const Machine& machine) {
  std::map<std::string, std::string> out;
  std::string table;
  for (const std::string& line : split(machine_file_text(machine), '\n')) {
    const std::size_t equals = line.find(" = ");
    if (line.starts_with("[")) table = line.substr(1, line.size() - 2) + ".";
    if (equals == std::string::npos) continue;
    std::string value = line.substr(equals + 3);
    std::erase(value, '"');
    out[table + line.substr(0, equals)] = value;
  }
  return out;
}

TEST(MachinesPage, ShowsTheMachines) {
  std::string head = "| key |", rule = "|---|", rows, sources;
  std::vector<std::map<std::string, std::string>> values;
  for (const NamedMachine& named : named_machines()) {
    head += text(" ", named.name, " |");
    rule += "---|";
    values.push_back(values_of(named.machine));
    sources += text("- `", named.name, "`: ", named.summary, ".\n");
    for (const NumberSource& source : named.sources)
      wrap(sources, text("- ", source.keys, ": ", source.source, "."), 2, 118);
  }
  for (const MachineKey& key : machine_keys()) {
    if (key.path == "name") continue;
    rows += text("| `", key.path, "` |");
    for (auto& of : values) rows += text(" ", of[key.path], " |");
    rows += "\n";
  }
  expect_between("machines", text("\n", head, "\n", rule, "\n", rows, "\n"));
  expect_between("sources", text("\n", sources, "\n"));
}

TEST(MachinesPage, ExplainsEveryKey) {
  const std::string page = page_of_machines();
  for (const MachineKey& key : machine_keys())
    EXPECT_NE(page.find(text("\n| `", key.path, "` | `", key.example, "` | ")), std::string::npos)
        << key.path << " " << key.example;
}

/// The file of the example is one.
TEST(MachinesPage, ShowsAFile) {
  const std::string page = page_of_machines();
  const std::size_t begin = page.find("```toml\n") + 8;
  const Machine lab =
      parse_machine_file(page.substr(begin, page.find("```", begin) - begin), "lab");
  EXPECT_EQ(lab.devices(), 24);
  EXPECT_EQ(lab.host, (LinkSpeed{12.5, 6, 3, 8}));
  EXPECT_EQ(lab.level_of(3, 3), Level::Core);
  EXPECT_EQ(lab.level_of(3, 6), Level::Socket);
  EXPECT_EQ(lab.level_of(3, 9), Level::Host);
  EXPECT_EQ(lab.level_of(3), Level::Host);
  const auto each_gets = [&](const AxisSpan& axis) { return 1e6 / lab.price({axis}).per_byte; };
  EXPECT_NEAR(each_gets({Level::Host, 1, 24}), 12.5, 1e-3);
  EXPECT_NEAR(each_gets({Level::Host, 8, 3}), 12.5 / 8, 1e-3);
}

}  // namespace
}  // namespace tessera
