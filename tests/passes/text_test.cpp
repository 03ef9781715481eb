/// Passes as pairs of texts: each file under graphs/ is a case. Lines up to "-----" are the graph
/// that goes in; the rest is what comes out, one graph after another for partition. The first line
/// names the pass and says why the case exists.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "repo_file.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/print.h"
#include "tessera/ir/verify.h"
#include "tessera/ops/table.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/merge_pads.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/place_chunks.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/simplify.h"

namespace tessera {
namespace {

std::string one(const Graph& out) {
  verify(out);
  return to_text(out);
}

/// The regions of all stages, and what they send: "stages 1f1b p=2 v=1 mb=4".
std::string stages(const std::string& words, const Graph& graph) {
  std::array<char, 16> schedule{};
  PipelineStrategy pipeline;
  int microbatches = 1;
  if (std::sscanf(words.c_str(), "stages %15s p=%d v=%d mb=%d", schedule.data(), &pipeline.stages,
                  &pipeline.chunks, &microbatches) != 4)
    return "not understood: " + words;
  const Graph placed =
      propagate(place_chunks(graph, cut_into_chunks(graph, pipeline)), one_device(microbatches));
  const Pipeline order(
      make_schedule(schedule.data(), {pipeline.stages, pipeline.chunks, microbatches}));
  std::string out;
  for (int stage = 0; stage < pipeline.stages; ++stage) {
    const Program program = partition(placed, order, stage);
    out += text("# stage ", stage, ":");
    for (const Action& action : program.actions)
      out += in_loop(action.region) ? " " + to_text(action, order.schedule()) : "";
    out += "\n";
    for (const auto& [slot, depth] : program.rings) out += text("# ring ", slot, " ", depth, "\n");
    for (const Program::Message& message : program.messages)
      out += text("# ", message.from == stage ? "sends " : "receives ", message.name, "\n");
    for (const Region& region : program.regions) {
      if (region.graph.size() > 0)
        out += text("# ", program.name_of(region), "\n", one(region.graph));
    }
  }
  return out;
}

std::string run_pass(const std::string& pass, const Graph& graph) {
  if (pass == "simplify") return one(simplify(graph));
  if (pass == "merge_pads") return one(merge_pads(graph));
  if (pass == "fuse") return one(fuse(graph));
  try {
    if (pass.starts_with("stages ")) return stages(pass, graph);
    if (pass == "place_chunks2") return one(place_chunks(graph, cut_into_chunks(graph, {2})));
    if (pass == "propagate2") return one(propagate(graph, one_device(2)));
    if (pass == "partition2") {
      std::string out;
      for (const Region& region : partition(propagate(graph, one_device(2))).regions) {
        out += text("# ", to_text(region.kind), "\n", one(region.graph));
      }
      return out;
    }
  } catch (const Error& error) {
    return text("error: ", error.what(), "\n");
  }
  ADD_FAILURE() << "unknown pass " << pass;
  return "";
}

std::vector<std::string> case_files() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(repo_file("tests/passes/graphs"))) {
    out.push_back(entry.path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

class PassText : public testing::TestWithParam<std::string> {};

TEST_P(PassText, GivesWhatTheFileSays) {
  std::ifstream file(GetParam());
  std::stringstream all;
  all << file.rdbuf();
  const std::string content = all.str(), mark = "-----\n";
  const std::size_t cut = content.find(mark);
  ASSERT_NE(cut, std::string::npos) << "no line ----- in the file";
  const std::string pass = content.substr(2, content.find(':') - 2);
  const std::string out = run_pass(pass, parse_graph(content.substr(0, cut), find_op));
  if (std::getenv("TESSERA_ACCEPT") != nullptr)
    std::ofstream(GetParam()) << content.substr(0, cut + mark.size()) << out;
  EXPECT_EQ(out, content.substr(cut + mark.size()))
      << "if this is what it should be: TESSERA_ACCEPT=1 writes it to " << GetParam();
}

INSTANTIATE_TEST_SUITE_P(Files, PassText, testing::ValuesIn(case_files()), [](const auto& info) {
  return std::filesystem::path(info.param).stem().string();
});

}  // namespace
}  // namespace tessera
