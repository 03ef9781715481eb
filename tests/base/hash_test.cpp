// Hashes: the published values for nothing, and that pieces do not matter.
#include "tessera/base/hash.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(Hash, OfNothing) {
  // xxhash's own test values for empty input and seed 0.
  EXPECT_EQ(hash64(""), 0x2d06800538d394c2u);
  EXPECT_EQ(hash128_text({}), "99aa06d3014798d86001c324468d497f");
}

TEST(Hash, PiecesDoNotMatter) {
  const std::string bytes(1000, 'x');
  StreamHash hash;
  for (std::size_t at = 0; at < bytes.size(); at += 7)
    hash.update(std::string_view(bytes).substr(at, 7));
  EXPECT_EQ(hash.text(), hash128_text(std::as_bytes(std::span(bytes))));
}

TEST(Hash, KeysDependOnSeedAndPath) {
  EXPECT_EQ(random_key(1, "layers.0.drop"), random_key(1, "layers.0.drop"));
  EXPECT_NE(random_key(1, "layers.0.drop"), random_key(2, "layers.0.drop"));
  EXPECT_NE(random_key(1, "layers.0.drop"), random_key(1, "layers.1.drop"));
  // The low 64 bits of the 128-bit hash: the last 16 digits of its text.
  EXPECT_EQ(random_key(0, ""), 0x6001c324468d497fu);
}

}  // namespace
}  // namespace tessera
