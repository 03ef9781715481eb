/// Folders of pictures by the command: train on every mesh, go on, predict, evaluate, export.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/command_test.h"
#include "repo_file.h"
#include "tessera/pretrained/pretrained_model.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class PictureFolderCommand : public testing::Test {
 protected:
  PictureFolderCommand() {
    const char* const kGoldens[] = {"photo.png",       "baseline.jpg", "grey.jpg", "inks.jpg",
                                    "bits.png",        "palette.png",  "deep.png", "turned-7.jpg",
                                    "progressive.jpg", "alpha.png",    "grey.png", "turned.png"};
    for (std::size_t i = 0; i < std::size(kGoldens); ++i) {
      const fs::path golden = kGoldens[i];
      const char* const classes[] = {"cat", "dog", "fox"};
      for (const auto& [part, every] : {std::pair("train", 1U), {"valid", 2U}, {"test", 3U}}) {
        if (i % every != 0) continue;
        const std::string to =
            text("pictures/", part, "/", classes[i / 2 % 3], "/", golden.string());
        fs::create_directories(fs::path(folder_ / to).parent_path());
        fs::copy_file(repo_file("tests/golden/pictures/") + golden.string(), folder_ / to);
      }
    }
  }
  Ran train(const std::string& flags) const {
    return run(words(folder_.expand(
        text("train --threads 1 --family vit --image-size 16 --patch-size 8 --layers 2 --heads 2 ",
             "--width 16 --data @/pictures --steps 8 --global-batch-size 4 --lr 1e-2 ",
             "--output @/run ", flags))));
  }
  std::vector<double> losses() const {
    std::vector<double> out;
    for (const std::string& line : split(read(folder_ / "run/metrics.jsonl"), '\n')) {
      const auto json = nlohmann::json::parse(line, nullptr, false);
      if (json.is_object() && json.value("kind", "") == "train") out.push_back(json["loss"]);
    }
    return out;
  }
  std::string said(const std::string& flags) const {
    fs::remove_all(folder_ / "run");
    const Ran ran = train(flags);
    EXPECT_NE(ran.code, 0) << flags;
    return ran.err;
  }

  Folder folder_;
};

TEST_F(PictureFolderCommand, TrainOnEveryMeshToTheSameNumbers) {
  std::vector<double> plain;
  for (const char* mesh : {"", "--devices 2 --tensor-model-parallel-size 2 --sequence-parallel",
                           "--devices 2 --pipeline-model-parallel-size 2 --micro-batch-size 2",
                           "--devices 4 --zero-stage 3"}) {
    fs::remove_all(folder_ / "run");
    const Ran ran = train(mesh);
    ASSERT_EQ(ran.code, 0) << mesh << ran.err;
    const std::vector<double> found = losses();
    ASSERT_EQ(found.size(), 8U);
    if (plain.empty()) plain = found;
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], plain[i], 1e-5) << mesh;
  }
  fs::remove_all(folder_ / "run");
  ASSERT_EQ(train("--exit-interval 3").code, 0);
  const Ran on = train("--resume auto");
  ASSERT_EQ(on.code, 0) << on.err;
  EXPECT_EQ(losses(), plain);
  fs::remove_all(folder_ / "run");
  ASSERT_EQ(train("--no-augment").code, 0);
  EXPECT_NE(losses(), plain);
}

TEST_F(PictureFolderCommand, PredictEvaluateAndExport) {
  ASSERT_EQ(train("").code, 0);
  const auto predicted = [&](const std::string& model, const std::string& data) {
    const Ran ran = run(words(folder_.expand(text("predict ", model, " --data ", data))));
    EXPECT_EQ(ran.code, 0) << ran.err;
    return split(ran.out, '\n');
  };
  const std::vector<std::string> ours = predicted("@/run", "@/pictures/test");
  EXPECT_EQ(ours[0], "file\tlabel\tprediction\tp(cat)\tp(dog)\tp(fox)");
  EXPECT_TRUE(ours[1].starts_with(folder_.expand("@/pictures/test/cat/deep.png\tcat\t")));
  const Ran exported = run(words(folder_.expand("export @/run --output @/out")));
  ASSERT_EQ(exported.code, 0) << exported.err;
  EXPECT_EQ(predicted("@/out", "@/pictures/test"), ours);
  const auto config = nlohmann::json::parse(read(folder_ / "out/config.json"));
  EXPECT_EQ(config["id2label"]["2"], "fox");
  const auto processor = nlohmann::json::parse(read(folder_ / "out/preprocessor_config.json"));
  EXPECT_EQ(processor["size"]["height"], 16);
  EXPECT_EQ(PretrainedModel::open(folder_ / "out").image_processor(),
            "size=16x16,resample=bilinear,rescale_factor=0.00392156862745098,"
            "image_mean=0.5:0.5:0.5,image_std=0.5:0.5:0.5");
  // Without classes, or with others, there are no labels; one picture will do.
  fs::rename(folder_ / "pictures/test/cat", folder_ / "pictures/test/others");
  EXPECT_TRUE(predicted("@/run", "@/pictures/test")[0].starts_with("file\tprediction\t"));
  EXPECT_EQ(predicted("@/run", "@/pictures/test/others/deep.png")[1].substr(
                folder_.expand("@/pictures/test/others/deep.png").size()),
            ours[1].substr(folder_.expand("@/pictures/test/cat/deep.png\tcat").size()));
  const Ran scored = run(words(folder_.expand("evaluate @/out --data @/pictures/valid")));
  ASSERT_EQ(scored.code, 0) << scored.err;
  EXPECT_NE(scored.out.find("accuracy"), std::string::npos) << scored.out;
  const Ran unlabelled = run(words(folder_.expand("evaluate @/out --data @/pictures/test")));
  EXPECT_NE(unlabelled.err.find("is of class 'others', which is not among the classes"),
            std::string::npos)
      << unlabelled.err;
  // Weights of three classes with the same names keep their head.
  fs::remove_all(folder_ / "run");
  const Ran again = train("--init-from @/out");
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out.find("initialized at random"), std::string::npos) << again.out;
  constexpr const char* kUnknown = "/out' does not say how pictures are made for it";
  EXPECT_EQ(again.out.find(kUnknown), std::string::npos) << again.out;
  fs::remove(folder_ / "out/preprocessor_config.json");
  fs::remove_all(folder_ / "run");
  const Ran unknown = train("--init-from @/out");
  EXPECT_NE(unknown.out.find(kUnknown), std::string::npos) << unknown.out;
}

TEST_F(PictureFolderCommand, WhatDoesNotFitIsTold) {
  EXPECT_NE(said("--image-processor size=20x20").find("image-processor makes pictures of 20 x 20"),
            std::string::npos);
  EXPECT_NE(said("--image-processor size=20").find("it must be HEIGHTxWIDTH"), std::string::npos);
  EXPECT_NE(said("--classes 2").find("are of 3 classes: 'cat', 'dog', 'fox'"), std::string::npos);
  EXPECT_NE(said("--data @/pictures/train/cat").find("has no class; put pictures into a folder"),
            std::string::npos);
  EXPECT_NE(said("--test-data @/pictures").find("has several parts; give one of them"),
            std::string::npos);
  EXPECT_NE(said("--valid-data @/pictures/nowhere").find("nowhere"), std::string::npos);
  fs::rename(folder_ / "pictures/valid/fox", folder_ / "pictures/valid/wolf");
  EXPECT_NE(said("").find("is of class 'wolf', which is not among the classes"), std::string::npos);
  folder_.write("pictures/train/cat/broken.jpg", "\xFF\xD8\xFF\xE0");
  EXPECT_NE(said("").find("broken.jpg' is a damaged JPEG"), std::string::npos);
  const Ran text_model = run(words(folder_.expand(
      "train --family gpt2 --data @/pictures/train/cat --steps 1 --output @/run --augment")));
  EXPECT_NE(text_model.err.find("--augment does nothing with task causal_lm"), std::string::npos)
      << text_model.err;
  EXPECT_NE(text_model.err.find("models of pictures, such as --family vit"), std::string::npos)
      << text_model.err;
}

}  // namespace
}  // namespace tessera
