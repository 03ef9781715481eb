/// Models of SentencePiece with a piece of 300 KB: what two pieces make it is found without a look
/// at each place where it could be cut.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "tessera/tokenizers/tokenizer.h"

namespace tessera {
namespace {

std::string varint(std::uint64_t number) {
  std::string out;
  for (; number >= 0x80; number >>= 7) out += static_cast<char>(number | 0x80);
  return out + static_cast<char>(number);
}
std::string field(int number, std::uint64_t value) {
  return varint(static_cast<std::uint64_t>(number) << 3) + varint(value);
}
std::string field(int number, const std::string& bytes) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 2) + varint(bytes.size()) + bytes;
}
std::string piece(const std::string& text, float score, int type = 1) {
  std::string bytes(sizeof score, 0);
  std::memcpy(bytes.data(), &score, sizeof score);
  return field(1, field(1, text) + varint(2 << 3 | 5) + bytes + field(3, type));
}

Tokenizer tokenizer_with(const std::string& last_piece, bool bpe, const std::string& of_class) {
  std::string model = piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3);
  float score = -20;
  for (const char* each : {"\u2581", "a", "b", "c"}) model += piece(each, score--);
  model += piece("ab", -1) + piece("abc", -2) + piece("\u2581abc", -3) + piece(last_piece, -4);
  model += field(2, field(3, bpe ? 2 : 1) + field(41, 1) + field(42, 2));
  model += field(3, field(3, 1) + field(4, 1) + field(5, 1));
  return Tokenizer::of({{"tokenizer.model", model},
                        {"tokenizer_config.json", R"({"tokenizer_class": ")" + of_class + "\"}"}},
                       "t");
}

TEST(LongPieces, AreReadAsShortOnes) {
  std::string some, same;
  for (int i = 0; i < 100'000; ++i) {
    some += "abc";
    same += "aaa";
  }
  for (const char* of_class : {"LlamaTokenizer", "TokenizersBackend"}) {
    for (const bool bpe : {true, false}) {
      if (!bpe && of_class == std::string("LlamaTokenizer")) continue;
      const auto ids = [&](const std::string& last) {
        return tokenizer_with(last, bpe, of_class).encode("abc ab bcab");
      };
      SCOPED_TRACE(std::string(of_class) + (bpe ? ", bpe" : ", unigram"));
      const std::vector<std::int32_t> usual = ids("cc");
      EXPECT_EQ(ids(some), usual);
      EXPECT_EQ(ids(same), usual);
      EXPECT_NE(std::ranges::find(usual, 9), usual.end()) << "it merges";
    }
  }
  // What is made of two pieces is merged, however long: "abc" and "abc".
  EXPECT_EQ(tokenizer_with("abcabc", true, "TokenizersBackend").encode("babcabc"),
            (std::vector<std::int32_t>{3, 5, 10}));
}

}  // namespace
}  // namespace tessera
