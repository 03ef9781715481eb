/// README.md shows figures of bench/results.

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "docs/shown.h"
#include "repo_file.h"
#include "tessera/base/format.h"
#include "tessera/base/text.h"

namespace tessera::test {
namespace {

constexpr const char* kReadme = "README.md";
constexpr const char* kReadmeTest = "tests/docs/readme_test.cpp";

/// A step that was timed in turns with peers: a file of bench/results, and names of its rows.
struct StepFigure {
  const char* what;
  const char* processor;  // on two cores
  const char* file;
  const char* own;
  const char* torch;
  const char* jax;  // nullptr: it was not there
};
constexpr StepFigure kFigures[] = {
    {"GPT-2 small, f32", "Zen 4", "2026-11-24-amd-epyc-25-17-gpt2-step", "plain", "PyTorch", "JAX"},
    {"GPT-2 small, bf16", "Zen 4", "2026-11-24-amd-epyc-25-17-gpt2-step", "bf16", "PyTorch bf16",
     "JAX bf16"},
    {"BERT-base, f32", "Zen 5", "2026-11-26-amd-epyc-26-2-bert-step", "plain", "PyTorch", nullptr},
    {"BERT-base, bf16", "Zen 5", "2026-11-26-amd-epyc-26-2-bert-step", "bf16", "PyTorch bf16",
     nullptr},
    {"GPT-2 small, f32", "Zen 3", "2026-11-26-amd-epyc-25-1-gpt2-step", "plain", "PyTorch",
     nullptr},
    {"GPT-2 small, 2 devices", "Zen 3", "2026-11-26-amd-epyc-25-1-scaling", "plain", "PyTorch DDP",
     nullptr},
    {"GPT-2 small, ZeRO-3 on 2", "Zen 3", "2026-11-26-amd-epyc-25-1-scaling", "zero-3",
     "PyTorch FSDP2", nullptr},
};

nlohmann::json result_of(const StepFigure& figure, const char* name) {
  std::ifstream in(repo_file(text("bench/results/", figure.file, ".json")));
  const nlohmann::json all = nlohmann::json::parse(in);
  for (const nlohmann::json& row : all.at("results")) {
    if (row.at("name") == name) return row;
  }
  ADD_FAILURE() << figure.file << " has no row " << name;
  return {};
}

/// "1.54 s  1,798 MiB"
std::string cell(const StepFigure& figure, const char* name) {
  if (name == nullptr) return "";
  const nlohmann::json row = result_of(figure, name);
  const auto mib = row.at("peak_bytes").get<std::int64_t>() >> 20;
  return format("%5.2f s %4lld MiB", row.at("step_seconds").get<double>(),
                static_cast<long long>(mib));
}

TEST(Readme, ShowsTheFiguresOfTheBenchmarks) {
  std::string table =
      "a training step of        on           Tessera            PyTorch              JAX\n";
  for (const StepFigure& figure : kFigures) {
    std::string line = format("%-25s %-7s %-18s %-18s %-16s", figure.what, figure.processor,
                              cell(figure, figure.own).c_str(), cell(figure, figure.torch).c_str(),
                              cell(figure, figure.jax).c_str());
    line.erase(line.find_last_not_of(' ') + 1);
    table += line + "\n";
  }
  expect_text(kReadme, kReadmeTest, "figures", table);
}

}  // namespace
}  // namespace tessera::test
