/// The look at a vendor's kernels: on XLA's CPU, where kernels are other forms of attention, and on
/// the plugin of the tests, whose results are ones, or an argument that they take over.

#include "tessera/accelerator/check_attention.h"

#include <gtest/gtest.h>

#include "hlo/on_plugin.h"
#include "pjrt/test_plugin.h"

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
    for (std::size_t at = 0; !from.empty() && (at = out.text.find(from, at)) != std::string::npos;
         at += to.size())
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

TEST(CheckAttention, RefusesOtherNumbers) {
  const pjrt::TestPlugin plugin;
  const pjrt::Client client(plugin.load(), {});
  EXPECT_EQ(attention_distance(client, with("", "")), 0);
  const char* const argument = "%arg0: tensor<1x128x2x2x64xbf16>";
  const std::string taken = std::string(argument) + " {tf.aliasing_output = 0 : i32}";
  EXPECT_GT(attention_distance(client, with(argument, taken)), 0.5);
  hlo::EmitOptions options;
  EXPECT_NO_THROW(require_attention(client, options));
  plugin.control().fail_at = "PJRT_Client_Compile";
  const std::string error = pjrt::error_of([&] { require_attention(client, options); });
  EXPECT_NE(error.find("--no-graph-optimization"), std::string::npos) << error;
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
