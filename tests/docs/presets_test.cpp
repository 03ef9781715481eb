/// docs/command.md has a row for each published model, with the values of its preset.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "repo_file.h"
#include "tessera/base/text.h"
#include "tessera/config/fields.h"
#include "tessera/config/presets.h"

namespace tessera::test {
namespace {

std::string document() {
  std::ifstream file(repo_file("docs/command.md"));
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

/// "| `gpt3-175b` | arXiv 2005.14165 | gpt2 | 96, 96, 12288 | ...".
std::string row_of(const Preset& preset) {
  RunConfig config;
  preset.apply(config);
  complete(config);
  config.model = with_derived(config.model);
  std::string out = text("| `", preset.name, "` | ", preset.source);
  const std::vector<std::vector<const char*>> columns = {
      {"family"},
      {"layers", "heads", "kv-heads", "width", "ffn-width"},
      {"context", "vocab-size"},
      {"dropout"},
      {"optimizer", "adam-beta2", "weight-decay"},
      {"lr", "min-lr", "lr-decay-style", "lr-warmup-steps", "lr-decay-steps"},
      {"global-batch-size", "steps"}};
  for (const std::vector<const char*>& column : columns) {
    std::vector<std::string> values;
    values.reserve(column.size());
    for (const char* name : column) values.push_back(get_text(*find_field(name).field, config));
    out += " | " + join(values);
  }
  return out + text(" | ", config.fp16 ? "`--fp16`" : config.bf16 ? "`--bf16`" : "f32", " |");
}

TEST(PresetTable, HasThePublishedModels) {
  const std::string shown = document();
  for (const Preset& preset : presets()) {
    if (preset.source.empty()) {
      EXPECT_NE(shown.find(text("`", preset.name, "`")), std::string::npos) << preset.name;
    } else {
      EXPECT_NE(shown.find(row_of(preset)), std::string::npos) << row_of(preset);
    }
  }
}

}  // namespace
}  // namespace tessera::test
