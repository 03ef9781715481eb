/// docs/guides/plan.md names every flag that the planner sets, docs/reference/files.md every key of
/// its JSON.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "repo_file.h"
#include "tessera/base/text.h"
#include "tessera/device/device.h"
#include "tessera/planner/answer.h"
#include "tessera/planner/knobs.h"

namespace tessera::test {
namespace {

std::string page(const std::string& path) {
  std::ifstream file(repo_file(path));
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

TEST(PlanningPage, NamesEveryFlag) {
  const std::string shown = page("docs/guides/plan.md");
  for (const Knob& knob : knobs())
    EXPECT_NE(shown.find(text("`--", knob.field)), std::string::npos) << knob.field;
}

/// All keys of an object and of those inside it.
void expect_keys(const nlohmann::json& json, const std::string& shown) {
  if (json.is_array() && !json.empty()) return expect_keys(json[0], shown);
  if (!json.is_object()) return;
  for (const auto& [key, value] : json.items()) {
    // Parts and components have names of their own.
    if (key == "memory" || key == "predicted_parts") {
      EXPECT_NE(shown.find(text("`", key, "`")), std::string::npos) << key;
      if (key == "predicted_parts") expect_keys(*value.begin(), shown);
      continue;
    }
    EXPECT_NE(shown.find(text("`", key, "`")), std::string::npos) << key;
    expect_keys(value, shown);
  }
}

TEST(PlanningPage, NamesEveryKey) {
  PlanQuestion question;
  ModelConfig& model = question.base.model;
  model.layers = model.heads = 2;
  model.width = model.context = 16;
  model.vocabulary = 40;
  complete(question.base);
  question.machine = question.base.parallel.machine;
  question.devices = 2;
  const auto device = make_cpu_device({.threads = 1});
  const PlanAnswer answer =
      plan_for(question, [&](const RunConfig&) -> Device& { return *device; });
  const auto json = nlohmann::json::parse(to_json(answer, question));
  EXPECT_FALSE(json.at("alternatives").empty() || json.at("what_if").empty());
  expect_keys(json, page("docs/reference/files.md"));
}

}  // namespace
}  // namespace tessera::test
