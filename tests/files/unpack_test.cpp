/// Packed files hold what the programs gzip and zstd packed, and damage has its place.

#include "tessera/files/unpack.h"

#include <gtest/gtest.h>

#include <cstring>

#include "files/packed.h"
#include "files/test_data.h"
#include "tessera/base/text.h"
#include "tessera/files/json_lines.h"
#include "tessera/files/table_file.h"
#include "tessera/files/text.h"

namespace tessera {
namespace {

std::string bytes_of(std::string_view hex) {
  std::string out;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  return out;
}
/// Of "one\ntwo\nthree\n": what `gzip -n` (1.12) and `zstd` (1.5.4) write.
const std::string kByGzip =
    bytes_of("1f8b0800000000000003cbcf4be52a29cfe72ac9284a4de50200b6d5e6250e000000");
const std::string kByZstd = bytes_of("28b52ffd240e7100006f6e650a74776f0a74687265650aa4588934");
constexpr const char* kThree = "one\ntwo\nthree\n";

std::string unpacked(const std::string& packed, std::size_t in, std::size_t out_size) {
  std::size_t at = 0;
  Unpacker unpacker("a.gz", [&](std::span<std::byte> into) {
    // A source that gives less than it is asked for has no more, so pieces are filled.
    std::size_t given = 0;
    while (given < into.size() && at < packed.size()) {
      const std::size_t some = std::min({in, into.size() - given, packed.size() - at});
      std::memcpy(into.data() + given, packed.data() + at, some);
      at += some, given += some;
    }
    return given;
  });
  std::string out;
  for (std::size_t got = out_size; got == out_size;) {
    std::string part(out_size, '\0');
    got = unpacker.read(std::as_writable_bytes(std::span(part)));
    out += part.substr(0, got);
  }
  return out;
}

/// Lines that do not compress to almost nothing.
std::string many_lines(int count) {
  std::string out;
  std::uint32_t x = 1;
  for (int i = 0; i < count; ++i) out += text(x = x * 1664525 + 1013904223, "\n");
  return out;
}

TEST(Unpack, ReadsWhatOtherProgramsPacked) {
  const std::string large = many_lines(30000);
  const struct {
    const char* what;
    std::string packed, holds;
  } cases[] = {{"gzip's", kByGzip, kThree},
               {"zstd's", kByZstd, kThree},
               {"pieces of gzip, as bgzip makes them", kByGzip + packed_by_gzip("") + kByGzip,
                std::string(kThree) + kThree},
               {"frames of zstd, as pzstd makes them",
                std::string("\x50\x2A\x4D\x18\x04\0\0\0skip", 12) + kByZstd + kByZstd,
                std::string(kThree) + kThree},
               {"zeros behind it, as tapes have", kByGzip + std::string(1000, '\0'), kThree},
               {"nothing", packed_by_zstd(""), ""},
               {"more than a buffer, gzip", packed_by_gzip(large), large},
               {"more than a buffer, zstd", packed_by_zstd(large), large}};
  for (const auto& [what, packed, holds] : cases) {
    for (const std::size_t out : {std::size_t{7}, std::size_t{100'000}})
      EXPECT_EQ(unpacked(packed, 1000, out), holds) << what;
  }
}

TEST(Unpack, WhatIsDamagedOrCutShortSaysWhere) {
  const std::string large = many_lines(30000);
  const TestFolder folder;
  for (const bool gzip : {true, false}) {
    const std::string whole = gzip ? packed_by_gzip(large) : packed_by_zstd(large),
                      path = folder / (gzip ? "a.jsonl.gz" : "a.jsonl.zst");
    const auto said = [&](const std::string& bytes) {
      write_atomically(path, bytes);
      return message_of([&] { read_contents(path); });
    };
    const std::string start = text("'", path, "' is packed by ", gzip ? "gzip" : "zstd", " and ");
    const std::string cut = said(whole.substr(0, whole.size() / 2));
    EXPECT_NE(cut.find(start + "ends too early, at line "), std::string::npos) << cut;
    EXPECT_NE(cut.find(" of what it holds; it was cut short"), std::string::npos) << cut;
    EXPECT_EQ(cut.find("at line 1,"), std::string::npos) << "half of it is read: " << cut;
    EXPECT_NE(said(whole.substr(0, whole.size() - 1)).find("ends too early"), std::string::npos)
        << "the sum at its end is missing";
    EXPECT_NE(said(whole + "more").find("has other bytes behind line 30001"), std::string::npos);
    std::string other = whole;
    other[whole.size() / 2] ^= 0x55;
    const std::string damaged = said(other);
    EXPECT_NE(damaged.find(start + "damaged at line "), std::string::npos) << damaged;
    // No byte can change without being noticed, but for a name and a time in the header.
    const std::string small = gzip ? kByGzip : kByZstd;
    for (std::size_t i = gzip ? 10 : 4; i < small.size(); ++i) {
      other = small;
      other[i] ^= 1;
      EXPECT_NE(said(other), "") << "byte " << i;
    }
  }
  write_atomically(folder / "b.gz", "plain");
  EXPECT_NE(message_of([&] { Contents(folder / "b.gz"); }).find("is not packed by gzip or zstd"),
            std::string::npos);
  write_atomically(folder / "c.ZST", "");
  EXPECT_NE(message_of([&] { Contents(folder / "c.ZST"); }).find("but is empty"),
            std::string::npos);
}

TEST(Unpack, WhatHoldsFarMoreThanItsBytesIsNotHeldInMemory) {
  const TestFolder folder;
  write_atomically(folder / "a.gz", packed_by_gzip(std::string(64 << 20, 'x')));
  EXPECT_EQ(read_contents(folder / "a.gz").size(), std::size_t{64} << 20);
  const std::string said = message_of([&] { read_contents(folder / "a.gz", 1 << 20); });
  EXPECT_NE(said.find("which would all be held in memory"), std::string::npos) << said;
  // Lines have an end even where nothing is held.
  write_atomically(folder / "b.gz", packed_by_gzip(std::string(65 << 20, 'x')));
  const std::vector<std::string> paths = {folder / "b.gz"};
  LineBlocks blocks(paths);
  LineBlock block;
  EXPECT_NE(message_of([&] { blocks.next(block); }).find("a line of more than"), std::string::npos);
}

TEST(Unpack, ContentsSkip) {
  const TestFolder folder;
  const std::string all = many_lines(200'000);
  for (const bool packs : {false, true}) {
    const std::string path = folder / (packs ? "a.gz" : "a");
    write_atomically(path, packs ? packed_by_gzip(all) : all);
    Contents contents(path);
    EXPECT_EQ(contents.packed(), packs);
    std::string part(10, '\0');
    for (const std::int64_t at : {0, 10, 1000, 1'500'000}) {
      contents.skip_to(at);
      EXPECT_EQ(contents.offset(), at);
      EXPECT_EQ(contents.read(std::as_writable_bytes(std::span(part))), part.size());
      EXPECT_EQ(part, all.substr(static_cast<std::size_t>(at), part.size()));
    }
    EXPECT_NE(message_of([&] { contents.skip_to(1 << 30); }).find("was cut short or changed"),
              std::string::npos);
  }
}

TEST(Unpack, EveryReaderOfDataTakesPackedFiles) {
  const TestFolder folder;
  EXPECT_EQ(unpacked_name("a/b.jsonl.GZ"), "a/b.jsonl");
  EXPECT_EQ(unpacked_name("b.tsv.zstd"), "b.tsv");
  EXPECT_EQ(unpacked_name(".gz"), ".gz");
  write_atomically(folder / "a.txt.gz", kByGzip);
  write_atomically(folder / "b.zst", kByZstd);
  EXPECT_EQ(load_text({folder / "a.txt.gz", folder / "b.zst"}).bytes, std::string(kThree) + kThree);
  EXPECT_EQ(read_lines(folder / "a.txt.gz").size(), 3u);
  const std::vector<std::string> wanted = {"text"};
  write_atomically(folder / "a.tsv.gz", packed_by_gzip("id\ttext\n1\tone\n"));
  write_atomically(folder / "a.jsonl.zst", packed_by_zstd("{\"text\": \"one\"}\n"));
  for (const std::string name : {"a.tsv.gz", "a.jsonl.zst"}) {
    EXPECT_EQ(read_table(folder / name, wanted).columns[0][0], "one") << name;
    EXPECT_EQ(table_columns(folder / name).back(), "text") << name;
  }
  const std::vector<std::string> paths = {folder / "a.txt.gz", folder / "b.zst"};
  LineBlocks blocks(paths, 5);
  LineBlock block;
  std::vector<std::string> seen;
  std::int64_t file_bytes = 0;
  while (blocks.next(block)) {
    file_bytes += block.file_bytes;
    for_each_line(block, [&](std::string_view line, const LinePlace& place) {
      seen.push_back(text(line, place.line));
    });
  }
  EXPECT_EQ(join(seen), "one1, two2, three3, one1, two2, three3");
  EXPECT_EQ(file_bytes, blocks.bytes());
}

}  // namespace
}  // namespace tessera
