/// docs/reference/machines.md shows the machines with a name as the code has them, and explains every key.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "repo_file.h"
#include "tessera/base/text.h"
#include "tessera/machines/find_machine.h"
#include "tessera/machines/machine_file.h"

namespace tessera {
namespace {

std::string page_of_machines() {
  std::ostringstream bytes;
  bytes << std::ifstream(repo_file("docs/reference/machines.md")).rdbuf();
  return bytes.str();
}

/// Fails where another text stands between the marks; with TESSERA_ACCEPT it is put there.
void expect_between(const std::string& mark, const std::string& wanted) {
  const std::string page = page_of_machines(), first = text("<!-- ", mark, " -->\n");
  const std::size_t begin = page.find(first) + first.size(),
                    end = page.find(text("<!-- end of ", mark, " -->"));
  ASSERT_LE(begin, end);
  if (std::getenv("TESSERA_ACCEPT") != nullptr) {
    std::ofstream(repo_file("docs/reference/machines.md"))
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

/// The keys whose values differ among the machines; the sources are in the code, beside the values.
TEST(MachinesPage, ShowsTheMachines) {
  std::string head = "| key |", rule = "|---|", rows, summaries;
  const std::string f16 = "device.f16.", bf16 = "device.bf16.";
  std::vector<std::map<std::string, std::string>> values;
  for (const NamedMachine& named : named_machines()) {
    head += text(" ", named.name, " |");
    rule += "---|";
    values.push_back(values_of(named.machine));
    summaries += text("- `", named.name, "`: ", named.summary, ".\n");
    for (const auto& [path, value] : values.back()) {
      if (!path.starts_with(f16)) continue;
      EXPECT_EQ(value, values.back().at(bf16 + path.substr(f16.size()))) << named.name << " " << path;
    }
  }
  for (const MachineKey& key : machine_keys()) {
    if (key.path == "name" || key.path == "known_error") continue;
    const auto same = [&](auto& of) { return of[key.path] == values[0][key.path]; };
    if (std::ranges::all_of(values, same)) continue;
    if (key.path.starts_with(f16)) continue;  // as of bf16, for all of them
    rows += text("| `", key.path, "` |");
    for (auto& of : values) rows += text(" ", of[key.path], " |");
    rows += "\n";
  }
  expect_between("machines", text("\n", summaries, "\n", head, "\n", rule, "\n", rows, "\n"));
}

/// "links.core.units" -> "links.LEVEL.units": a row of the page is for all levels, or all floats.
std::string row_of(const MachineKey& key) {
  const std::vector<std::string> parts = split(key.path, '.');
  if (parts.size() < 3) return std::string(key.path);
  return text(parts[0], parts[0] == "links" ? ".LEVEL." : ".FLOATS.", parts[2]);
}

TEST(MachinesPage, ExplainsEveryKey) {
  const std::string page = page_of_machines();
  for (const MachineKey& key : machine_keys())
    EXPECT_NE(page.find(text("\n| `", row_of(key), "` | ")), std::string::npos) << key.path;
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
