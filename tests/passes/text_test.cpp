/// Passes as pairs of texts: each file under graphs/ is a case. Lines up to "-----" are how the
/// pass is run (text_setup.h) and the graph that goes in; the rest is what comes out, one graph
/// after another for partition, bucket and strips, which cuts any value in two. Passes that come
/// before in plan/compile.cpp run first: partition gets what propagate makes, unless the graph that
/// goes in is placed.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "repo_file.h"
#include "tessera/ir/parse.h"
#include "tessera/ir/print.h"
#include "tessera/ir/verify.h"
#include "tessera/ops/table.h"
#include "tessera/passes/absorb.h"
#include "tessera/passes/add_uses.h"
#include "tessera/passes/advance.h"
#include "tessera/passes/bucket.h"
#include "tessera/passes/dispatch.h"
#include "tessera/passes/fuse.h"
#include "tessera/passes/merge_pads.h"
#include "tessera/passes/offload.h"
#include "tessera/passes/partition.h"
#include "tessera/passes/place_chunks.h"
#include "tessera/passes/preview.h"
#include "tessera/passes/propagate.h"
#include "tessera/passes/recompute.h"
#include "tessera/passes/ring_attention.h"
#include "tessera/passes/simplify.h"
#include "tessera/passes/strips.h"
#include "text_setup.h"

namespace tessera {
namespace {

/// Without the lines of ops/*.cpp that made parts of expanded ops: they move.
std::string one(const Graph& out) {
  verify(out);
  static const std::regex ours(" ops/[a-z_]+[.]cpp:[0-9]+");
  return std::regex_replace(to_text(out), ours, "");
}

/// The regions of one stage; in a pipeline with its actions, rings and messages.
std::string to_text(const Program& program, const TextSetup& setup, const Pipeline& order,
                    int stage) {
  std::string out;
  if (order.chunks() > 1) {
    out += text("# stage ", stage, ":");
    for (const Action& action : program.actions)
      out += in_loop(action.region) ? " " + to_text(action, order.schedule()) : "";
    out += "\n";
    for (const auto& [slot, depth] : program.rings) out += text("# ring ", slot, " ", depth, "\n");
    for (const Program::Message& message : program.messages)
      out += text("# ", message.from == stage ? "sends " : "receives ", message.name, "\n");
  }
  for (const Region& region : program.regions) {
    const std::string name = program.name_of(region);
    if (region.graph.size() > 0 && (setup.show.empty() || setup.show.contains(name)))
      out += text("# ", name, "\n", one(region.graph));
  }
  return out;
}

Graph chunks_placed(const Graph& graph, const TextSetup& setup) {
  const PipelineStrategy& pipeline = setup.strategy.pipeline;
  return pipeline.total() == 1 ? graph : place_chunks(graph, cut_into_chunks(graph, pipeline));
}

Graph all_placed(const Graph& graph, const TextSetup& setup) {
  if (graph.form() == Form::Placed) return graph;
  return propagate(add_uses(chunks_placed(graph, setup), setup.strategy.gather), setup.strategy,
                   setup.machine);
}

std::string partitioned(const Graph& graph, const TextSetup& setup) {
  const Graph placed = all_placed(graph, setup);
  const PipelineStrategy& pipeline = setup.strategy.pipeline;
  const Pipeline order(make_schedule(
      pipeline.schedule, {pipeline.stages, pipeline.chunks, placed.mesh().size(kMicrobatchAxis)}));
  std::string out;
  for (int stage = 0; stage < pipeline.stages; ++stage) {
    Program program = partition(placed, order, stage, setup.machine);
    if (setup.pass == "ring_attention") program = ring_attention(std::move(program), {1});
    if (setup.pass == "bucket") program = bucket(std::move(program), setup.strategy.buckets);
    if (setup.pass == "dispatch") program = dispatch(std::move(program));
    if (setup.pass == "strips") program = strips(std::move(program), {1, 1, 2});
    if (setup.pass == "advance") program = advance(std::move(program));
    if (setup.pass == "copy_beside") program = copy_beside(std::move(program));
    out += to_text(program, setup, order, stage);
  }
  return out;
}

std::string run_pass(const TextSetup& setup, const Graph& graph) {
  if (setup.pass == "simplify") return one(simplify(graph));
  if (setup.pass == "merge_pads") return one(merge_pads(graph));
  if (setup.pass == "fuse") return one(fuse(graph));
  if (setup.pass == "add_onto") return one(add_onto(graph));
  try {
    if (setup.pass == "place_chunks") return one(chunks_placed(graph, setup));
    if (setup.pass == "recompute") return one(recompute(graph, setup.strategy.recompute));
    if (setup.pass == "preview") return one(preview(graph, setup.strategy.mesh));
    if (setup.pass == "offload") return one(offload(graph, setup.strategy));
    if (setup.pass == "add_uses")
      return one(add_uses(chunks_placed(graph, setup), setup.strategy.gather));
    if (setup.pass == "propagate") return one(all_placed(graph, setup));
    if (setup.pass == "partition" || setup.pass == "bucket" || setup.pass == "strips" ||
        setup.pass == "ring_attention" || setup.pass == "advance" || setup.pass == "copy_beside" ||
        setup.pass == "dispatch")
      return partitioned(graph, setup);
  } catch (const Error& error) {
    return text("error: ", error.what(), "\n");
  }
  ADD_FAILURE() << "unknown pass " << setup.pass;
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
  const std::string out =
      run_pass(read_setup(content), parse_graph(content.substr(0, cut), find_op));
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
