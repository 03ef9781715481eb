/// tessera inspect --json: what the lines say, as values.

#include <nlohmann/json.hpp>

#include "apps/command_test.h"

namespace tessera {
namespace {

using InspectedJson = nlohmann::json;

InspectedJson inspected(const Folder& folder, const std::string& words_after) {
  const Ran ran = run(words(folder.expand("inspect --json " + words_after)));
  EXPECT_EQ(ran.code, 0) << ran.err;
  return InspectedJson::parse(ran.out, nullptr, false);
}

TEST(InspectJson, RunsAndTheirGraphs) {
  const Folder folder;
  folder.write("text.txt", some_text());
  const Ran trained = run(words(
      folder.expand("train --preset gpt2-tiny --layers 1 --data @/text.txt --steps 3 --save-every "
                    "1 --eval-iters 1 --output @/run --dump-dir @/graphs")));
  ASSERT_EQ(trained.code, 0) << trained.err;

  InspectedJson whole = inspected(folder, "@/run");
  EXPECT_EQ(whole["kind"], "checkpoint");
  EXPECT_EQ(whole["step"], 3);
  EXPECT_EQ(whole["samples"], 24);
  std::int64_t parameters = 0, bytes = 0;
  for (const InspectedJson& tensor : whole["tensors"]) {
    std::int64_t numel = 1;
    for (const InspectedJson& dim : tensor["shape"]) numel *= dim.get<std::int64_t>();
    bytes += numel * (tensor["dtype"].get<std::string>().ends_with("64") ? 8 : 4);
    if (tensor["role"] == "parameter") parameters += numel;
  }
  EXPECT_EQ(whole["parameters"], parameters);
  EXPECT_EQ(whole["bytes"], bytes);
  const std::string lines = run({"inspect", folder / "run"}).out;
  EXPECT_NE(lines.find(text(whole["tensors"].size(), ", ", bytes_text(bytes))), lines.npos);

  // Of several, a line each; one that is damaged says so, and the newest intact one is whole.
  EXPECT_EQ(whole["checkpoints"].size(), 3u);
  EXPECT_EQ(whole["checkpoints"][2],
            InspectedJson({{"name", "step-00000003"}, {"step", 3}, {"samples", 24}}));
  std::filesystem::resize_file(folder / "run/checkpoints/step-00000003/manifest.json", 10);
  whole = inspected(folder, "@/run");
  EXPECT_EQ(whole["step"], 2);
  EXPECT_NE(whole["checkpoints"][2]["damaged"].get<std::string>().find("manifest"),
            std::string::npos);
  EXPECT_EQ(inspected(folder, "@/run/checkpoints/step-00000001").count("checkpoints"), 0u);

  const InspectedJson checked =
      inspected(folder, "@/run/checkpoints/step-00000002 --verify --digest");
  EXPECT_EQ(checked["intact"], true);
  EXPECT_EQ(checked["digest"].get<std::string>() + "\n",
            run({"inspect", folder / "run/checkpoints/step-00000002", "--digest"}).out);

  std::string graph;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "graphs"))
    if (graph.empty() && entry.is_regular_file()) graph = entry.path();
  const InspectedJson dumped = inspected(folder, graph);
  EXPECT_EQ(dumped["kind"], "graph");
  std::int64_t nodes = 0;
  for (const InspectedJson& op : dumped["ops"]) nodes += op["nodes"].get<std::int64_t>();
  EXPECT_EQ(dumped["nodes"], nodes);
}

}  // namespace
}  // namespace tessera
