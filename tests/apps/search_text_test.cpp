// What a search finds for a run, as text.
#include "tessera/apps/search_text.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/config/presets.h"

namespace tessera {
namespace {

RunConfig llama_on(std::int64_t devices) {
  RunConfig out;
  find_preset("llama-tiny").apply(out);
  out.model.vocabulary = 256;
  out.parallel.devices = devices;
  return out;
}

bool says(const std::string& all, std::string_view words) {
  return all.find(words) != std::string::npos;
}

TEST(SearchText, SaysWhatWasFound) {
  const std::string all = search_text(llama_on(8), SearchMode::DynamicProgramming);
  EXPECT_TRUE(all.starts_with("dynamic_programming on d0=2 d1=2 d2=2: ")) << all;
  EXPECT_TRUE(says(all, ", gap 0.00 %, ")) << all;
  EXPECT_TRUE(says(all, "\n  .attn.qkv.matmul: [")) << all;
  EXPECT_TRUE(says(all, "layers.2: as layers.1\n")) << all;
  EXPECT_TRUE(says(all, "\n  .mlp.up.weight: [")) << all;
  for (const SearchMode mode :
       {SearchMode::RecursiveProgramming, SearchMode::ShardingPropagation}) {
    const std::string other = search_text(llama_on(8), mode);
    EXPECT_TRUE(other.starts_with(std::string(to_text(mode)) + " on d0=2 d1=2 d2=2: ")) << other;
    EXPECT_FALSE(says(other, "gap")) << other;
    EXPECT_TRUE(says(other, " MiB on a device\n") || says(other, " KiB on a device\n")) << other;
    EXPECT_TRUE(says(other, "\n  .attn.qkv.matmul: [")) << other;
    EXPECT_TRUE(says(other, "layers.2: as layers.1\n")) << other;
    EXPECT_TRUE(says(other, "\n  .mlp.up.weight: [")) << other;
  }
}

TEST(SearchText, ModesHaveNames) {
  EXPECT_EQ(search_mode_of("recursive_programming"), SearchMode::RecursiveProgramming);
  try {
    (void)search_mode_of("dynamic");
    FAIL() << "no mode";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "unknown search mode 'dynamic'; modes are dynamic_programming, "
                 "recursive_programming, sharding_propagation");
  }
}

}  // namespace
}  // namespace tessera
