/// Pictures in files are what Pillow and transformers read, and damage is told.

#include "tessera/files/picture.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "files/test_data.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/files/safetensors.h"

namespace tessera {
namespace {

const std::string kFolder = repo_file("tests/golden/pictures");

std::string golden_bytes(const std::string& name) { return read_file(kFolder + "/" + name); }

/// tools/golden/pictures.py says what each file is.
TEST(Pictures, AreWhatPillowReads) {
  const SafetensorsFile golden(kFolder + "/golden.safetensors");
  constexpr std::string_view kDecoded = "decoded.";
  int found = 0;
  for (const StoredTensor& tensor : golden.tensors()) {
    if (!tensor.name.starts_with(kDecoded)) continue;
    SCOPED_TRACE(tensor.name);
    ++found;
    const std::string name = tensor.name.substr(kDecoded.size());
    std::vector<std::int32_t> wanted(static_cast<std::size_t>(tensor.type.numel()));
    golden.read(tensor, 0, std::as_writable_bytes(std::span(wanted)));
    const Picture picture = decode_picture(golden_bytes(name), name);
    ASSERT_EQ((Shape{picture.height, picture.width, picture.channels}), tensor.type.shape);
    EXPECT_EQ(std::vector<std::int32_t>(picture.pixels.begin(), picture.pixels.end()), wanted);
    EXPECT_NO_THROW(check_picture(kFolder + "/" + name));
  }
  EXPECT_GE(found, 22);
}

TEST(Pictures, InGreyAreLuma) {
  const Picture one{1, 2, 3, {255, 0, 0, 10, 200, 30}};
  EXPECT_EQ(grey(one).pixels, (std::vector<std::uint8_t>{76, 124}));  // Pillow's
}

/// A file that ends anywhere, or has another byte, is told by name, or is the same picture where
/// what changed says nothing of it.
TEST(Pictures, DamageIsTold) {
  for (const char* const name : {"baseline.jpg", "progressive.jpg", "photo.png", "palette.png"}) {
    SCOPED_TRACE(name);
    const std::string whole = golden_bytes(name);
    const Picture picture = decode_picture(whole, name);
    int refused = 0;
    for (std::size_t size = 0; size < whole.size(); size += 7) {
      try {
        // The last bytes say that nothing follows.
        EXPECT_EQ(decode_picture(whole.substr(0, size), name), picture) << size;
      } catch (const Error& error) {
        ++refused;
        EXPECT_EQ(error.fault(), Fault::Data);
        EXPECT_NE(std::string(error.what()).find(text("'", name, "' is ")), std::string::npos);
      }
    }
    EXPECT_GE(refused, static_cast<int>(whole.size() / 7) - 4);
  }
  const auto said = [](const std::string& bytes) {
    return message_of([&] { decode_picture(bytes, "a.png"); });
  };
  EXPECT_EQ(said(""), "'a.png' is empty; replace it, or take it away");
  EXPECT_NE(said("GIF89a..").find("'a.png' is a picture (GIF); convert it to PNG or JPEG"),
            std::string::npos);
  EXPECT_NE(said("RIFF\1\2\3\4WEBPVP8 ").find("a picture (WebP)"), std::string::npos);
  EXPECT_NE(said("<html>").find("no picture"), std::string::npos);
  std::string flipped = golden_bytes("photo.png");
  flipped[60] ^= 1;
  EXPECT_NE(said(flipped).find("is a damaged PNG: "), std::string::npos) << said(flipped);
}

/// 100,000 x 100,000 pixels in few bytes.
TEST(Pictures, AreOfBoundedSize) {
  const TestFolder folder;
  std::string png = golden_bytes("photo.png"), jpeg = golden_bytes("baseline.jpg");
  const std::string large("\0\1\x86\xA0\0\1\x86\xA0", 8);
  png.replace(16, 8, large);
  const std::size_t frame = jpeg.find("\xFF\xC0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\xFF\xFF\xFF\xFF");
  for (const auto& [name, bytes, size] :
       {std::tuple("a.png", png, "100000 x 100000"), {"a.jpg", jpeg, "65535 x 65535"}}) {
    const std::string path = folder / name, what = text("is a picture of ", size, " pixels");
    write_atomically(path, bytes);
    EXPECT_NE(message_of([&] { check_picture(path); }).find(what), std::string::npos);
    // The header's check sum is wrong now, which libpng tells first; libjpeg tells sides itself.
    const std::string told = message_of([&] { decode_picture(bytes, path); });
    EXPECT_TRUE(told.find(what) != std::string::npos ||
                told.find("is a damaged ") != std::string::npos)
        << told;
  }
  EXPECT_NE(message_of([&] {
              decode_picture(golden_bytes("photo.png"), "a", 900);
            }).find("at most 900 in all"),
            std::string::npos);
}

TEST(Pictures, HeadersAreRead) {
  const TestFolder folder;
  const auto said = [&](const std::string& bytes) {
    const std::string path = folder / "a.jpg";
    write_atomically(path, bytes);
    return message_of([&] { check_picture(path); });
  };
  EXPECT_NE(said("").find("is empty"), std::string::npos);
  EXPECT_NE(said("BM1234").find("a picture (BMP)"), std::string::npos);
  EXPECT_NE(
      said(golden_bytes("baseline.jpg").substr(0, 100)).find("is a damaged JPEG: it has no header"),
      std::string::npos);
  EXPECT_NE(
      said(golden_bytes("photo.png").substr(0, 20)).find("is a damaged PNG: it has no header"),
      std::string::npos);
  EXPECT_EQ(said(golden_bytes("photo.png")), "");  // what a file is called does not matter
}

}  // namespace
}  // namespace tessera
