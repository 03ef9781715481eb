/// The look at a vendor's kernels, on XLA's CPU: kernels are other forms of attention there.

#include "tessera/accelerator/check_attention.h"

#include <gtest/gtest.h>

#include "hlo/on_plugin.h"

namespace tessera::test {

namespace {

/// Right, by another way.
hlo::Module in_blocks(const Graph& graph, NodeId id) {
  hlo::EmitOptions options;
  options.most_scores = 1;
  options.fewest_keys = 32;
  return hlo::node_module(graph, id, options);
}

/// With a text in the place of another: wrong.
WriteNode with(const std::string& from, const std::string& to) {
  return [from, to](const Graph& graph, NodeId id) {
    hlo::Module out = hlo::node_module(graph, id);
    for (std::size_t at = 0; (at = out.text.find(from, at)) != std::string::npos; at += to.size())
      out.text.replace(at, from.size(), to);
    return out;
  };
}

}  // namespace

TEST(CheckAttention, TellsRightFromWrong) {
  if (cpu_plugin() == nullptr) GTEST_SKIP() << kNoPlugin;
  const double right = attention_distance(*cpu_plugin(), in_blocks);
  EXPECT_GT(right, 0);  // it is another form
  EXPECT_LT(right, 0.01);
  const std::string scale = "dense<0x3E000000>", twice = "dense<0x3E800000>";
  EXPECT_GT(attention_distance(*cpu_plugin(), with(scale, twice)), 0.1);
  EXPECT_GT(attention_distance(*cpu_plugin(), with("compare LE", "compare LT")), 0.1);  // mask
}

TEST(CheckAttention, PluginsThatHaveNoKernelsSayIt) {
  if (cpu_plugin() == nullptr) GTEST_SKIP() << kNoPlugin;
  hlo::EmitOptions options;
  options.cudnn_attention = true;
  EXPECT_THROW(require_attention(*cpu_plugin(), options), Error);
  options.cudnn_attention = false;
  EXPECT_NO_THROW(require_attention(*cpu_plugin(), options));
}

}  // namespace tessera::test
