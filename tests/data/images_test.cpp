/// Pictures in a file of safetensors, and the samples that are drawn of them.

#include "tessera/data/images.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "files/test_data.h"
#include "tessera/base/text.h"
#include "tessera/tensor/ignored_label.h"
#include "tessera/tensor/sixteen_bit.h"

namespace tessera {
namespace {

constexpr std::int64_t kPictures = 5, kChannels = 2, kHeight = 4, kWidth = 6, kPatch = 2;
constexpr std::int64_t kPixels = kChannels * kHeight * kWidth;

/// The number of a pixel: which picture, channel, line and column it is.
float pixel(std::int64_t n, std::int64_t c, std::int64_t y, std::int64_t x) {
  return static_cast<float>(((n * kChannels + c) * kHeight + y) * kWidth + x);
}

class Images : public testing::Test {
 protected:
  template <typename Label>
  std::string write(const std::vector<Label>& labels, DType dtype = DType::F32) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(kPictures * kPixels * size_of(dtype)));
    for (std::int64_t i = 0; i < kPictures * kPixels; ++i) {
      const auto value = static_cast<float>(i);
      const std::uint16_t bits = to_bf16(value);
      const auto at = static_cast<std::size_t>(i * size_of(dtype));
      if (dtype == DType::F32) std::memcpy(bytes.data() + at, &value, 4);
      if (dtype == DType::BF16) std::memcpy(bytes.data() + at, &bits, 2);
    }
    const std::string path = folder_ / "pictures.safetensors";
    write_safetensors(
        path,
        {TensorSource::of("pixel_values", {dtype, {kPictures, kChannels, kHeight, kWidth}, {}},
                          bytes),
         TensorSource::of("labels",
                          {dtype_of<Label>(), {static_cast<std::int64_t>(labels.size())}, {}},
                          std::as_bytes(std::span(labels)))},
        {});
    return path;
  }

  struct Drawn {
    std::vector<float> patches;
    std::vector<std::int32_t> labels;
  };
  static Drawn draw(const Samples& samples, std::int64_t first, std::int64_t count) {
    Drawn out;
    out.patches.resize(static_cast<std::size_t>(count * kPixels));
    out.labels.resize(static_cast<std::size_t>(count));
    BatchInputs batch("test");
    batch.add(
        "patches",
        {DType::F32, {count, kHeight * kWidth / kPatch / kPatch, kChannels * kPatch * kPatch}, {}},
        std::as_writable_bytes(std::span(out.patches)).data());
    batch.add("labels", {DType::I32, {count}, {}},
              std::as_writable_bytes(std::span(out.labels)).data());
    batch.begin();
    samples.fill(first, count, batch);
    return out;
  }

  TestFolder folder_;
};

TEST_F(Images, PatchesAreLineByLineAndChannelByChannel) {
  for (const DType dtype : {DType::F32, DType::BF16}) {
    const auto set = std::make_shared<const ImageSet>(
        ImageSet::open(write(std::vector<std::int64_t>{3, 0, 1, 2, 0}, dtype)));
    EXPECT_EQ(set->size(), kPictures);
    EXPECT_EQ(set->classes(), 4);
    const Pictures all = Pictures::split(set, 0);
    const auto samples = image_samples(all.train, {.patch = kPatch, .shuffled = false});
    const Drawn drawn = draw(*samples, 0, kPictures + 1);
    EXPECT_EQ(drawn.labels, (std::vector<std::int32_t>{3, 0, 1, 2, 0, kIgnoredLabel}));
    auto at = drawn.patches.begin();
    for (std::int64_t n = 0; n < kPictures; ++n)
      for (std::int64_t py = 0; py < kHeight / kPatch; ++py)
        for (std::int64_t px = 0; px < kWidth / kPatch; ++px)
          for (std::int64_t c = 0; c < kChannels; ++c)
            for (std::int64_t y = 0; y < kPatch; ++y)
              for (std::int64_t x = 0; x < kPatch; ++x) {
                const float wanted = pixel(n, c, py * kPatch + y, px * kPatch + x);
                ASSERT_EQ(*at++, dtype == DType::F32 ? wanted : from_bf16(to_bf16(wanted)));
              }
  }
}

TEST_F(Images, EachIsDrawnOnceInAnEpochAndInAnotherOrderInTheNext) {
  const auto set = std::make_shared<const ImageSet>(
      ImageSet::open(write(std::vector<std::int32_t>{0, 1, 2, 3, 4})));
  const Pictures parts = Pictures::split(set, 0.2);
  const auto samples = image_samples(parts.train, {.patch = kPatch, .seed = 3});
  ASSERT_EQ(samples->size(), 4);
  std::set<std::vector<std::int32_t>> orders;
  for (std::int64_t epoch = 0; epoch < 6; ++epoch) {
    std::vector<std::int32_t> labels = draw(*samples, 4 * epoch, 4).labels;
    orders.insert(labels);
    std::ranges::sort(labels);
    EXPECT_EQ(labels, (std::vector<std::int32_t>{0, 1, 2, 3}));
  }
  EXPECT_GT(orders.size(), 2);
  const auto held_out = image_samples(parts.valid, {.patch = kPatch, .shuffled = false});
  EXPECT_EQ(held_out->size(), 1);
  EXPECT_EQ(draw(*held_out, 0, 2).labels, (std::vector<std::int32_t>{4, kIgnoredLabel}));
}

/// As many as of tokens and of rows.
TEST_F(Images, TheLastOnesAreHeldOut) {
  const auto set =
      std::make_shared<const ImageSet>(ImageSet::open(write(std::vector<std::int32_t>(5, 0))));
  for (const auto& [share, held] : {std::pair(0.1, 1), {0.2, 1}, {0.4, 2}, {0.5, 3}, {0.0, 0}}) {
    const Pictures parts = Pictures::split(set, share);
    EXPECT_EQ(parts.train.range.count, 5 - held) << share;
    EXPECT_EQ(parts.valid.range.first, 5 - held) << share;
    EXPECT_EQ(parts.valid.range.count, held) << share;
  }
}

TEST_F(Images, FilesThatAreNoneAreToldSo) {
  const auto said = [&](const std::string& path, const std::string& what) {
    const std::string message = message_of([&] { ImageSet::open(path); });
    EXPECT_NE(message.find(what), std::string::npos) << message;
  };
  said(write(std::vector<std::int64_t>{0, 0, 0, 0, -1}), "label 4 is -1");
  said(write(std::vector<std::int64_t>{0, 0, 0, 0}), "give as many labels as pictures");
  said(write(std::vector<float>{0, 0, 0, 0, 0}), "tensor 'labels' is of f32");
  const std::string path = folder_ / "other.safetensors";
  const std::vector<float> numbers(6);
  const auto one = [&](const char* name, const Shape& shape) {
    write_safetensors(
        path, {TensorSource::of(name, {DType::F32, shape, {}}, std::as_bytes(std::span(numbers)))},
        {});
    return path;
  };
  said(one("images", {1, 1, 2, 3}), "has no tensor 'pixel_values'");
  said(one("pixel_values", {1, 2, 3}), "tensor 'pixel_values' is [1,2,3]; it must be [pictures,");
  said(one("pixel_values", {1, 1, 2, 3}), "has no tensor 'labels'");
  EXPECT_NE(ImageSet::open(write(std::vector<std::int32_t>{0, 1, 2, 3, 4})).digest(),
            ImageSet::open(write(std::vector<std::int32_t>{0, 1, 2, 4, 3})).digest());
}

}  // namespace
}  // namespace tessera
