/// Which layers have experts, as a text.

#include "tessera/models/expert_layers.h"

#include <gtest/gtest.h>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

/// "0110": those of the first `count` layers.
std::string layers_of(const std::string& text, std::int64_t count) {
  const ExpertLayers layers(text);
  std::string out;
  for (std::int64_t i = 0; i < count; ++i) out += layers.has(i) ? '1' : '0';
  return out;
}

TEST(ExpertLayers, AreThoseOfMegatronLm) {
  EXPECT_EQ(layers_of("1", 4), "1111");
  EXPECT_EQ(layers_of("2", 5), "10101");
  EXPECT_EQ(layers_of("7", 3), "100");
  EXPECT_EQ(layers_of("[0]*3+[1]*2", 5), "00011");
  EXPECT_EQ(layers_of("([1]*3+[0]*1)*2", 8), "11101110");
  EXPECT_EQ(layers_of(" [0, 1, 1] + [0] * 2 ", 5), "01100");
  EXPECT_EQ(layers_of("(([0,1]))*2*2", 8), "01010101");
  EXPECT_EQ(ExpertLayers("2").listed(), 0);
  EXPECT_EQ(ExpertLayers("[0]*3+[1]*58").listed(), 61);
}

TEST(ExpertLayers, OtherTextsAreRefused) {
  for (const std::string text :
       {"", "0", "-1", "1.5", "2x", "[", "[]", "[2]", "[0]*", "[0]*-1", "[0]+", "([0]", "[0])",
        "[0] [1]", "[01", "first", "[1]*0", "[0]*2*0", "99999999999999999999"}) {
    SCOPED_TRACE(text);
    EXPECT_THROW(ExpertLayers{text}, Error);
  }
  EXPECT_THROW(ExpertLayers("[1]*100001"), Error);
  EXPECT_THROW(ExpertLayers("[1]*100000*100000*100000"), Error);
  EXPECT_THROW(ExpertLayers("([1]*60000+[0]*60000)"), Error);
  EXPECT_THROW(ExpertLayers(std::string(1000, '(')), Error);
}

TEST(ExpertLayers, HaveAShortText) {
  using Layers = std::vector<bool>;
  EXPECT_EQ(expert_layers_text(Layers{true, true, true}), "1");
  EXPECT_EQ(expert_layers_text(Layers{true}), "1");
  EXPECT_EQ(expert_layers_text(Layers{true, false, true, false}), "2");
  EXPECT_EQ(expert_layers_text(Layers{false, false, false, true, true}), "[0]*3+[1]*2");
  EXPECT_EQ(expert_layers_text(Layers{false, true, false}), "[0]+[1]+[0]");
  for (const Layers& layers : {Layers{true, false, false}, Layers{false, true, true, false},
                               Layers{true, true, false}, Layers{false, false}}) {
    const std::string text = expert_layers_text(layers);
    for (std::size_t i = 0; i < layers.size(); ++i)
      EXPECT_EQ(ExpertLayers(text).has(static_cast<std::int64_t>(i)), layers[i]) << text;
  }
}

}  // namespace
}  // namespace tessera
