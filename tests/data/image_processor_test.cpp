/// Pictures become what Pillow and transformers make of them, and what is drawn depends on numbers
/// alone.

#include "tessera/data/image_processor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "files/test_data.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/files/safetensors.h"

namespace tessera {
namespace {

const std::string kFolder = repo_file("tests/golden/pictures");

Picture photo() { return decode_picture(read_file(kFolder + "/photo.png"), "photo.png"); }

template <typename T>
std::vector<T> tensor(const SafetensorsFile& golden, const std::string& name) {
  const StoredTensor& found = golden.at(name);
  std::vector<T> out(static_cast<std::size_t>(found.type.numel()));
  golden.read(found, 0, std::as_writable_bytes(std::span(out)));
  return out;
}

std::vector<std::int32_t> whole_numbers(const Picture& picture) {
  return {picture.pixels.begin(), picture.pixels.end()};
}

/// To the byte, larger and smaller, and of one side alone.
TEST(ImageProcessors, ResizeAsPillow) {
  const SafetensorsFile golden(kFolder + "/golden.safetensors");
  const Picture picture = photo();
  for (std::size_t how = 0; how < kResamples.size(); ++how) {
    for (const auto& [height, width] : {std::pair(8, 8),
                                        {11, 5},
                                        {26, 9},
                                        {7, 37},
                                        {52, 61},
                                        {40, 12},
                                        {1, 1},
                                        {20, 61},
                                        {8, 35}}) {
      const std::string name = text("resized.", kResamples[how], ".", height, "x", width);
      SCOPED_TRACE(name);
      const Picture small = resized(picture, {0, 0, picture.height, picture.width}, height, width,
                                    static_cast<Resample>(how));
      EXPECT_EQ(whole_numbers(small), tensor<std::int32_t>(golden, name));
    }
  }
  EXPECT_EQ(whole_numbers(resized(picture, {3, 6, 17, 25}, 12, 12, Resample::Bicubic)),
            tensor<std::int32_t>(golden, "part"));
  EXPECT_EQ(resized(picture, {0, 0, 26, 37}, 26, 37, Resample::Lanczos), picture);
}

TEST(ImageProcessors, AreThoseOfTransformers) {
  const SafetensorsFile golden(kFolder + "/golden.safetensors");
  constexpr const char* kImagenet = ",image_mean=0.485:0.456:0.406,image_std=0.229:0.224:0.225";
  for (const auto& [name, given] :
       {std::pair("vit", std::string("size=16x16")),
        {"deit", text("size=20x20,crop_size=16x16,resample=bicubic", kImagenet)},
        {"bit", text("shortest_edge=18,crop_size=15x15,resample=bicubic", kImagenet)},
        {"plain", "size=9x14,resample=lanczos,image_mean=0,image_std=1"}}) {
    SCOPED_TRACE(name);
    const ImageProcessor processor = parse_image_processor(given, 16);
    const std::vector<float> wanted = tensor<float>(golden, text("processed.", name));
    std::vector<float> out(wanted.size());
    process(photo(), processor, out);
    float most = 0;
    for (std::size_t i = 0; i < out.size(); ++i)
      most = std::max(most, std::abs(out[i] - wanted[i]));
    EXPECT_LE(most, 1e-6F);  // rounding of f32, of numbers below 3
  }
}

TEST(ImageProcessors, BlackIsAddedWhereTheCutIsLarger) {
  const Picture one{1, 2, 3, {10, 20, 30, 40, 50, 60}};
  const ImageProcessor processor =
      parse_image_processor("size=1x2,crop_size=2x5,rescale_factor=1,image_mean=0,image_std=1", 1);
  std::vector<float> out(30);
  process(one, processor, out);
  EXPECT_EQ(std::vector(out.begin(), out.begin() + 10),
            (std::vector<float>{0, 10, 40, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(ImageProcessors, TextReadsBack) {
  const ImageProcessor usual = parse_image_processor("", 32);
  EXPECT_EQ(to_text(usual),
            "size=32x32,resample=bilinear,rescale_factor=0.00392156862745098,image_mean=0.5,"
            "image_std=0.5");
  for (const char* const given :
       {"", "shortest_edge=256,crop_size=224x220,resample=bicubic", "crop_size=8x8",
        "size=4x5,resample=lanczos,rescale_factor=1,image_mean=0:1:2,image_std=1:2:3"}) {
    const ImageProcessor processor = parse_image_processor(given, 32);
    EXPECT_EQ(parse_image_processor(to_text(processor), 7), processor) << given;
  }
  EXPECT_EQ(parse_image_processor("shortest_edge=256", 224).out_height(), 224);
  const auto said = [](const char* given) {
    return message_of([&] { parse_image_processor(given, 32); });
  };
  for (const auto& [given, what] : {std::pair("size=3", "it must be HEIGHTxWIDTH"),
                                    {"size=0x3", "sides are from 1"},
                                    {"size=3x4,shortest_edge=5", "give one of them"},
                                    {"size=3x4,size=3x4", "there twice"},
                                    {"resample=nearest", "bilinear, bicubic, lanczos"},
                                    {"image_std=0:1:1", "above 0"},
                                    {"image_mean=x", "it must be a number"},
                                    {"mean=1", "no key of an image processor"},
                                    {"size", "not KEY=VALUE"}})
    EXPECT_NE(said(given).find(what), std::string::npos) << given << ": " << said(given);
}

/// Each within the picture, of the shapes and sizes that are promised; another each epoch.
TEST(ImageProcessors, ViewsAreDrawnFromNumbers) {
  int mirrored = 0;
  double area = 0;
  std::set<std::int64_t> tops;
  constexpr int kDrawn = 2000;
  for (std::int64_t i = 0; i < kDrawn; ++i) {
    const PictureView view = draw_view(5, i % 40, i / 40, 120, 160),
                      again = draw_view(5, i % 40, i / 40, 120, 160);
    EXPECT_EQ(view.box, again.box);
    const PictureBox& box = view.box;
    ASSERT_TRUE(box.top >= 0 && box.left >= 0 && box.height > 0 && box.width > 0);
    ASSERT_TRUE(box.top + box.height <= 120 && box.left + box.width <= 160);
    const double shape = double(box.width) / double(box.height),
                 share = double(box.width * box.height) / (120 * 160);
    EXPECT_TRUE(shape > 0.72 && shape < 1.38) << shape;  // with sides rounded to pixels
    EXPECT_TRUE(share > 0.075 && share <= 1) << share;
    mirrored += view.mirrored;
    area += share;
    tops.insert(box.top);
  }
  EXPECT_NEAR(mirrored, kDrawn / 2, 100);
  EXPECT_NEAR(area / kDrawn, 0.48, 0.05);  // 0.54, less what does not fit
  EXPECT_GT(tops.size(), 60);
  // So narrow that no part has the shape: the middle.
  const PictureBox narrow = draw_view(5, 0, 0, 1000, 10).box;
  EXPECT_EQ(narrow.width, 10);
  EXPECT_NEAR(double(narrow.height), 13, 1);
}

TEST(ImageProcessors, ViewsAreMirrored) {
  const Picture one{1, 3, 3, {1, 1, 1, 2, 2, 2, 3, 3, 3}};
  const ImageProcessor processor =
      parse_image_processor("size=1x2,rescale_factor=1,image_mean=0,image_std=1", 1);
  std::vector<float> out(6);
  process(one, {{0, 1, 1, 2}, true}, processor, out);
  EXPECT_EQ(out, (std::vector<float>{3, 2, 3, 2, 3, 2}));
}

}  // namespace
}  // namespace tessera
