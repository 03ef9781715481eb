/// Weights in 4 bits against what transformers 5.24 makes of the same bytes.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "files/test_data.h"
#include "tessera/base/text.h"
#include "tessera/pretrained/hub/hub_weights.h"

namespace tessera {
namespace {

constexpr std::int64_t kTwoExperts = 2, kThreeResults = 3, kTwoBlocks = 2,
                       kPackedBytes = kTwoExperts * kThreeResults * kTwoBlocks * 16,
                       kPackedScales = kTwoExperts * kThreeResults * kTwoBlocks;

/// A folder with w_blocks and w_scales, made of U8.
void write_packed(const TestFolder& folder, const std::string& scales_name,
                  const std::string& blocks_shape = "[2,3,2,16]") {
  const std::string header = text(R"({"w_blocks":{"dtype":"U8","shape":)", blocks_shape,
                                  R"(,"data_offsets":[0,)", kPackedBytes, R"(]},")", scales_name,
                                  R"(":{"dtype":"U8","shape":[2,3,2],"data_offsets":[)",
                                  kPackedBytes, ",", kPackedBytes + kPackedScales, "]}}");
  std::ofstream out(folder / "model.safetensors", std::ios::binary);
  const auto size = static_cast<std::uint64_t>(header.size());
  char length[8];
  std::memcpy(length, &size, sizeof length);
  out.write(length, sizeof length);
  out << header;
  for (std::int64_t i = 0; i < kPackedBytes; ++i) out.put(static_cast<char>((7 * i + 3) % 256));
  for (std::int64_t i = 0; i < kPackedScales; ++i) out.put(static_cast<char>(120 + i % 10));
}

TEST(PackedFloats, AreWhatTransformersReads) {
  const TestFolder folder;
  write_packed(folder, "w_scales");
  const HubWeights weights = HubWeights::open(folder.path());
  EXPECT_EQ(weights.names(), std::vector<std::string>{"w"});
  ASSERT_EQ(weights.find("w")->type, (TensorType{DType::BF16, {2, 64, 3}, {}}));
  std::vector<float> all(2 * 64 * 3);
  weights.read("w", 0, all);
  const std::vector<float> first(all.begin(), all.begin() + 12), last(all.end() - 6, all.end());
  EXPECT_EQ(first, (std::vector<float>{0.01171875F, 0.046875F, 0.1875F, 0, -0.125F, -0.25F,
                                       -0.0078125F, -0.03125F, -0.125F, 0, -0.125F, -0.25F}));
  EXPECT_EQ(last, (std::vector<float>{-2, -8, -0.03125F, 6, 12, 0.0234375F}));
  double sum = 0, size = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    sum += static_cast<double>(all[i]) * static_cast<double>(i % 11 + 1);
    size += std::abs(static_cast<double>(all[i]));
  }
  EXPECT_EQ(sum, -167.13671875);
  EXPECT_EQ(size, 544.4140625);
  // A part that begins in one expert and ends in the next.
  std::vector<float> part(100);
  weights.read("w", 150, part);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + 150));
}

TEST(PackedFloats, WhatDoesNotFitIsNamed) {
  const auto refusal = [](const std::string& scales, const std::string& shape) -> std::string {
    const TestFolder folder;
    write_packed(folder, scales, shape);
    try {
      HubWeights::open(folder.path());
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refusal("v_scales", "[2,3,2,16]").find("'w_blocks' is without 'w_scales'"),
            std::string::npos);
  EXPECT_NE(refusal("w_scales", "[3,2,2,16]").find("[3,2,2,16] and 'w_scales' [2,3,2]"),
            std::string::npos);
  EXPECT_NE(refusal("w_scales", "[2,3,4,8]").find("numbers in 4 bits are U8"), std::string::npos);
}

}  // namespace
}  // namespace tessera
