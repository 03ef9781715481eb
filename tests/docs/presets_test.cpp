/// docs/guides/pretrain.md has a row for each preset, with its values.

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "repo_file.h"
#include "tessera/base/text.h"
#include "tessera/config/fields.h"
#include "tessera/config/presets.h"

namespace tessera::test {
namespace {

std::string document() {
  std::ifstream file(repo_file("docs/guides/pretrain.md"));
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

/// "| `gpt3-175b` | gpt2 | 96, 96, 12288 | ...".
std::string row_of(const Preset& preset) {
  RunConfig config;
  preset.apply(config);
  complete(config);
  config.model = with_derived(config.model);
  std::string out = text("| `", preset.name, "`");
  const std::vector<std::vector<const char*>> columns = {
      {"family"}, {"layers", "heads", "width"}, {"context"}, {"global-batch-size", "steps"}};
  for (const std::vector<const char*>& column : columns) {
    std::vector<std::string> values;
    values.reserve(column.size());
    for (const char* name : column) values.push_back(get_text(*find_field(name).field, config));
    out += " | " + join(values);
  }
  return out + text(" | ", preset.source, preset.source.empty() ? "|" : " |");
}

TEST(PresetTable, HasAllPresets) {
  const std::string shown = document();
  for (const Preset& preset : presets())
    EXPECT_NE(shown.find(row_of(preset)), std::string::npos) << row_of(preset);
}

}  // namespace
}  // namespace tessera::test
