/// preprocessor_config.json, read and written.

#include "tessera/pretrained/hub/hub_image_processor.h"

#include <gtest/gtest.h>

#include "files/test_data.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"

namespace tessera {
namespace {

constexpr const char* kNormal = "rescale_factor=0.00392156862745098,image_mean=";
constexpr const char* kImagenet = "0.485:0.456:0.406,image_std=0.229:0.224:0.225";

class HubImageProcessors : public testing::Test {
 protected:
  std::string read(const std::string& json) const {
    write_atomically(folder_ / kHubImageProcessor, json);
    return read_image_processor(folder_.path());
  }
  TestFolder folder_;
};

/// As transformers wrote them (tools/golden/pictures.py); what they make is in
/// tests/data/image_processor_test.cpp.
TEST_F(HubImageProcessors, AreRead) {
  const std::string golden = repo_file("tests/golden/pictures/");
  EXPECT_EQ(read_image_processor(golden + "vit"),
            text("size=16x16,resample=bilinear,", kNormal, "0.5:0.5:0.5,image_std=0.5:0.5:0.5"));
  EXPECT_EQ(read_image_processor(golden + "deit"),
            text("size=20x20,crop_size=16x16,resample=bicubic,", kNormal, kImagenet));
  EXPECT_EQ(read_image_processor(golden + "bit"),
            text("shortest_edge=18,crop_size=15x15,resample=bicubic,", kNormal, kImagenet));
  EXPECT_EQ(read_image_processor(golden + "plain"),
            text("size=9x14,resample=lanczos,", kNormal, "0,image_std=1"));
  EXPECT_EQ(read_image_processor(golden), "");
}

/// Sides as single numbers, and what is not said.
TEST_F(HubImageProcessors, OfEarlierVersionsAreRead) {
  EXPECT_EQ(read(R"({"feature_extractor_type": "ViTFeatureExtractor", "size": 32, "resample": 2,
                     "do_normalize": true, "image_mean": [0.5, 0.5, 0.5]})"),
            text("size=32x32,resample=bilinear,", kNormal, "0.5:0.5:0.5,image_std=0.5:0.5:0.5"));
  EXPECT_TRUE(read(R"({"feature_extractor_type": "DeiTFeatureExtractor", "size": 40,
                       "crop_size": 32})")
                  .starts_with("size=40x40,crop_size=32x32,resample=bicubic,"));
  EXPECT_TRUE(read(R"({"image_processor_type": "BitImageProcessorFast", "size": 40,
                       "do_center_crop": true, "do_rescale": false})")
                  .starts_with("shortest_edge=40,crop_size=224x224,resample=bicubic,"
                               "rescale_factor=1,"));
}

TEST_F(HubImageProcessors, ReadBackAsTheyWereWritten) {
  for (const char* const given :
       {"size=16x16,image_mean=0.5:0.5:0.5,image_std=0.5:0.5:0.5",
        "size=20x21,crop_size=16x15,resample=bicubic,image_mean=0:0.1:0.2,image_std=1:2:3",
        "shortest_edge=30,crop_size=15x15,resample=lanczos,rescale_factor=1,image_mean=1:2:3,"
        "image_std=1:1:1"}) {
    const ImageProcessor processor = parse_image_processor(given, 16);
    EXPECT_EQ(read(image_processor_json(processor, 3)), to_text(processor));
  }
}

TEST_F(HubImageProcessors, WhatIsNotKnownIsRefused) {
  const auto said = [&](const std::string& json) { return message_of([&] { read(json); }); };
  for (const auto& [json, what] :
       {std::pair(R"({"image_processor_type": "CLIPImageProcessor"})", "known are ViTImage"),
        {R"({"do_pad": true})", "do_pad is true"},
        {R"({"do_resize": false})", "do_resize is false"},
        {R"({"resample": 0})", "resample is 0"},
        {R"({"size": {"longest_edge": 3}})", "it must have height and width"},
        {R"({"size": 0})", "size is 0"},
        {R"({"image_mean": "a"})", "it must be numbers"},
        {"[]", "preprocessor_config.json"}})
    EXPECT_NE(said(json).find(what), std::string::npos) << json << ": " << said(json);
  EXPECT_NE(read(R"({"do_pad": false, "do_convert_rgb": null})"), "");
}

}  // namespace
}  // namespace tessera
