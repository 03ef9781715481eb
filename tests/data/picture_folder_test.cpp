/// Folders of pictures: which files they hold, of which classes, and the samples of them.

#include "tessera/data/picture_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "files/test_data.h"
#include "tessera/base/text.h"
#include "tessera/data/images.h"
#include "tessera/files/file.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class PictureFolders : public testing::Test {
 protected:
  /// A copy of a golden picture.
  void put(const std::string& name, const std::string& golden = "photo.png") const {
    fs::create_directories(fs::path(folder_ / name).parent_path());
    fs::copy_file(repo_file("tests/golden/pictures/" + golden), folder_ / name);
  }
  void write(const std::string& name, const std::string& bytes) const {
    fs::create_directories(fs::path(folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  /// "cat/1.png=cat ..."
  static std::string shown(const PictureList& list) {
    std::string out;
    for (const ListedPicture& picture : list.pictures)
      out += text(out.empty() ? "" : " ", picture.name, "=", picture.label);
    return out;
  }
  std::string said(const std::string& name) const {
    return message_of([&] { list_pictures({folder_ / name}); });
  }

  TestFolder folder_;
};

TEST_F(PictureFolders, ClassesAreFolders) {
  put("a/dog/2.PNG");
  put("a/cat/b.jpeg", "baseline.jpg");
  put("a/cat/inner/a.jpg", "baseline.jpg");
  put("a/cat/.hidden.png");
  write("a/cat/.DS_Store", "x");
  write("a/cat/notes.txt", "x");
  write("a/readme", "x");
  put("a/.git/x.png");
  fs::create_directory_symlink(folder_ / "a/cat", folder_ / "a/cat/inner/around");
  const PictureList list = list_pictures({folder_ / "a"});
  EXPECT_EQ(shown(list), "cat/b.jpeg=cat cat/inner/a.jpg=cat dog/2.PNG=dog");
  EXPECT_TRUE(list.labelled());
  EXPECT_NE(list.notice.find("2 of the files there are no pictures"), std::string::npos)
      << list.notice;
  const PictureList alone = list_pictures({folder_ / "a/dog", folder_ / "a/cat/b.jpeg"});
  EXPECT_FALSE(alone.labelled());
  EXPECT_EQ(alone.pictures.size(), 2U);
}

TEST_F(PictureFolders, TablesSayClasses) {
  put("a/1.png");
  put("a/deep/2.jpg", "baseline.jpg");
  put("a/3.png");
  write("a/metadata.csv", "label,file_name\nred,1.png\n\"a, b\",deep/2.jpg\n");
  EXPECT_EQ(shown(list_pictures({folder_ / "a"})), "1.png=red deep/2.jpg=a, b");
  write("b/metadata.jsonl", "{\"file_name\": \"1.png\"}\n");
  EXPECT_NE(said("b").find("line 1 of '"), std::string::npos);
  EXPECT_NE(said("b").find("names '1.png', which is no file in"), std::string::npos) << said("b");
  put("b/1.png");
  EXPECT_FALSE(list_pictures({folder_ / "b"}).labelled());
  write("a/metadata.csv", "label,file_name\nred,1.png\nblue,./1.png\n");
  EXPECT_NE(said("a").find("line 3 of '"), std::string::npos) << said("a");
  EXPECT_NE(said("a").find("names './1.png' again, as line 2 does"), std::string::npos);
}

TEST_F(PictureFolders, PartsAreFoundByName) {
  for (const char* const name : {"a/train/x/1.png", "a/val/x/1.png", "a/test/x/1.png"}) put(name);
  const PictureParts parts = picture_parts(folder_ / "a");
  EXPECT_EQ(parts.train, folder_ / "a/train");
  EXPECT_EQ(parts.valid, folder_ / "a/val");
  EXPECT_EQ(parts.test, folder_ / "a/test");
  put("b/train/1.png"), put("b/bus/1.png");  // classes
  EXPECT_EQ(picture_parts(folder_ / "b").train, "");
  EXPECT_EQ(shown(list_pictures({folder_ / "b"})), "bus/1.png=bus train/1.png=train");
  put("d/Train/x/1.png"), put("d/VAL/x/1.png");
  EXPECT_EQ(picture_parts(folder_ / "d").valid, folder_ / "d/VAL");
  write("d/metadata.csv", "file_name,label\nTrain/x/1.png,x\n");
  EXPECT_NE(
      message_of([&] { picture_parts(folder_ / "d"); }).find("has metadata.csv beside the folders"),
      std::string::npos);
  put("c/valid/x/1.png");
  EXPECT_EQ(picture_parts(folder_ / "c").valid, "");
  put("a/dev/x/1.png");
  EXPECT_NE(message_of([&] { picture_parts(folder_ / "a"); }).find("which are the same part"),
            std::string::npos);
}

TEST_F(PictureFolders, OthersAreToldByName) {
  fs::create_directories(folder_ / "none");
  EXPECT_NE(said("none").find("has no pictures (.jpg, .jpeg, .png); give one with"),
            std::string::npos);
  put("one/cat/1.png");
  fs::create_directories(folder_ / "one/dog");
  EXPECT_NE(said("one").find("dog', the folder of a class, has no pictures"), std::string::npos);
  put("loose/cat/1.png"), put("loose/2.png");
  EXPECT_NE(said("loose").find("2.png' lies beside folders of classes"), std::string::npos);
  write("gif/cat/1.gif", "GIF89a");
  EXPECT_NE(said("gif").find("1.gif' is a picture in a format that is not read (.gif)"),
            std::string::npos);
  put("link/cat/1.png");
  fs::create_symlink(folder_ / "nothing.png", folder_ / "link/cat/2.png");
  EXPECT_NE(said("link").find("2.png' is a link to nothing"), std::string::npos);
  put("latin/caf\xE9/1.png");
  EXPECT_NE(said("latin").find("has a name that is not UTF-8"), std::string::npos);
  write("text.txt", "x");
  EXPECT_NE(said("text.txt").find("does not end as a picture"), std::string::npos);
}

/// Headers are read before anything is trained, the rest when a picture is drawn.
TEST_F(PictureFolders, BrokenOnesAreToldByName) {
  const auto open = [&](const std::string& name, std::vector<std::string> names = {"cat", "dog"}) {
    return PictureFolder(folder_ / name, list_pictures({folder_ / name}),
                         {parse_image_processor("", 8), 3, std::move(names)});
  };
  put("a/cat/1.png"), put("a/dog/1.png");
  EXPECT_EQ(open("a").label(1), 1);
  EXPECT_FALSE(open("a", {}).labelled());
  EXPECT_NE(message_of([&] {
              open("a", {"cat", "fox"});
            }).find("1.png' is of class 'dog', which is not among the classes: 'cat', 'fox'"),
            std::string::npos);
  write("a/dog/2.png", "");
  EXPECT_NE(message_of([&] { open("a"); }).find("2.png' is empty"), std::string::npos);
  const std::string whole = read_file(folder_ / "a/cat/1.png");
  write("a/dog/2.png", whole.substr(0, whole.size() / 2));
  const PictureFolder half = open("a");
  std::vector<float> pixels(3 * 8 * 8);
  EXPECT_NO_THROW(half.read(1, {}, pixels));
  EXPECT_NE(message_of([&] { half.read(2, {}, pixels); }).find("2.png' is a damaged PNG"),
            std::string::npos);
  const auto sound = [&](const std::string& name) {
    return PictureFolder(folder_ / name, list_pictures({folder_ / name}),
                         {.processor = parse_image_processor("", 8),
                          .names = {"cat", "dog"},
                          .leaves_out_damaged = true});
  };
  EXPECT_EQ(sound("a").size(), 2);
  EXPECT_TRUE(
      sound("a").notice().starts_with("1 picture cannot be read, and left out; the first: '"))
      << sound("a").notice();
  write("b/cat/1.png", "x");
  EXPECT_NE(message_of([&] { sound("b"); }).find("none of the 1 pictures of '"), std::string::npos);
}

TEST_F(PictureFolders, AreKnownAgain) {
  put("a/cat/1.png"), put("a/dog/1.png"), put("b/cat/1.png"), put("b/dog/1.png");
  const auto digest = [&](const std::string& name, const std::vector<std::string>& names) {
    return PictureFolder(folder_ / name, list_pictures({folder_ / name}),
                         {parse_image_processor("", 8), 3, names})
        .digest();
  };
  const std::vector<std::string> names{"cat", "dog"};
  EXPECT_EQ(digest("a", names), digest("b", names));
  EXPECT_NE(digest("a", names), digest("a", {"dog", "cat"}));
  put("b/dog/2.png");
  EXPECT_NE(digest("a", names), digest("b", names));
}

class PictureSamples : public PictureFolders {
 protected:
  static constexpr std::int64_t kSide = 8, kPatch = 4, kNumbers = 3 * kSide * kSide;

  std::shared_ptr<const PictureFolder> ten(bool mixed) const {
    const std::vector<std::string> goldens{
        "photo.png",   "baseline.jpg", "grey.jpg",     "inks.jpg",         "bits.png",
        "palette.png", "turned.png",   "turned-7.jpg", "half-colours.jpg", "deep.png"};
    for (std::size_t i = 0; i < goldens.size(); ++i)
      put(text("a/", i % 2 == 0 ? "cat" : "dog", "/", i, fs::path(goldens[i]).extension().string()),
          goldens[i]);
    return std::make_shared<const PictureFolder>(
        folder_ / "a", list_pictures({folder_ / "a"}),
        PictureFolderOptions{parse_image_processor("", kSide), 3, {"cat", "dog"}, mixed});
  }
  static std::vector<float> draw(const Samples& samples, std::int64_t first, std::int64_t count) {
    std::vector<float> out(static_cast<std::size_t>(count * kNumbers));
    std::vector<std::int32_t> labels(static_cast<std::size_t>(count));
    BatchInputs batch("test");
    batch.add("patches", {DType::F32, {count, 4, 48}, {}},
              std::as_writable_bytes(std::span(out)).data());
    batch.add("labels", {DType::I32, {count}, {}},
              std::as_writable_bytes(std::span(labels)).data());
    batch.begin();
    samples.fill(first, count, batch);
    out.insert(out.end(), labels.begin(), labels.end());
    return out;
  }
};

/// A sample is a function of its number: whatever batches are drawn, in order or not.
TEST_F(PictureSamples, AreFunctionsOfTheirNumbers) {
  const Pictures parts = Pictures::split(ten(true), 0.2);
  const ImageSamplesOptions options{.patch = kPatch, .seed = 3, .varied = true};
  const auto sample = [&](std::int64_t number) {
    return draw(*image_samples(parts.train, options), number, 1);
  };
  const auto in_order = image_samples(parts.train, options);
  for (std::int64_t first = 0; first < 24; first += 4) {
    const std::vector<float> four = draw(*in_order, first, 4);
    for (std::int64_t i = 0; i < 4; ++i) {
      const std::vector<float> one = sample(first + i);
      EXPECT_TRUE(std::equal(one.begin(), one.end() - 1, four.begin() + i * kNumbers));
      EXPECT_EQ(one.back(), four[static_cast<std::size_t>(4 * kNumbers + i)]);
    }
  }
  const auto jumping = image_samples(parts.train, options);
  for (const std::int64_t first : {20, 4, 4, 8, 0})
    EXPECT_EQ(draw(*jumping, first, 4), draw(*image_samples(parts.train, options), first, 4));
}

TEST_F(PictureSamples, AreOtherPartsInEachEpochOrTheWhole) {
  const auto set = ten(true);
  const Pictures parts = Pictures::split(set, 0.2);
  ASSERT_EQ(parts.train.range.count, 8);
  EXPECT_EQ(parts.valid.range.count, 2);
  const auto distinct = [&](bool varied) {
    std::map<std::vector<float>, int> seen;
    const auto samples = image_samples(parts.train, {.patch = kPatch, .seed = 3, .varied = varied});
    for (std::int64_t i = 0; i < 24; ++i) ++seen[draw(*samples, i, 1)];
    return std::ssize(seen);
  };
  EXPECT_EQ(distinct(false), 8);
  EXPECT_EQ(distinct(true), 24);
  // Validation is never varied, and ends.
  const auto valid = image_samples(parts.valid, {.patch = kPatch, .shuffled = false});
  const std::vector<float> drawn = draw(*valid, 0, 3);
  std::vector<float> first(kNumbers), patches(kNumbers);
  set->read(8, {}, first);
  cut_to_patches({first, 3, kSide, kSide}, kPatch, patches);
  EXPECT_TRUE(std::equal(patches.begin(), patches.end(), drawn.begin()));
}

/// What is held out is of all classes, whatever the names of the files.
TEST_F(PictureSamples, AreMixedBeforeSomeAreHeldOut) {
  for (int i = 0; i < 40; ++i) put(text("many/", i < 20 ? "a" : "b", "/", i, ".png"));
  const PictureFolder set(folder_ / "many", list_pictures({folder_ / "many"}),
                          {parse_image_processor("", kSide), 3, {"a", "b"}, /*mixed=*/true});
  int of_b = 0;
  for (std::int64_t i = 30; i < 40; ++i) of_b += set.label(i);
  EXPECT_GT(of_b, 1);
  EXPECT_LT(of_b, 9);
}

/// Of a batch that is read ahead too, but not before it is asked for.
TEST_F(PictureSamples, ErrorsComeWithTheirBatch) {
  for (int i = 0; i < 4; ++i) put(text("a/cat/", i, ".png"));
  const std::string whole = read_file(folder_ / "a/cat/0.png");
  fs::remove(folder_ / "a/cat/2.png");
  write("a/cat/2.png", whole.substr(0, whole.size() / 2));
  const auto set = std::make_shared<const PictureFolder>(
      folder_ / "a", list_pictures({folder_ / "a"}),
      PictureFolderOptions{parse_image_processor("", kSide), 3, {"cat"}});
  const auto samples =
      image_samples(Pictures::split(set, 0).train, {.patch = kPatch, .shuffled = false});
  EXPECT_NO_THROW(draw(*samples, 0, 2));
  for (int i = 0; i < 2; ++i)
    EXPECT_NE(message_of([&] { draw(*samples, 2, 2); }).find("2.png' is a damaged PNG"),
              std::string::npos);
  EXPECT_NO_THROW(draw(*samples, 0, 2));
}

}  // namespace
}  // namespace tessera
