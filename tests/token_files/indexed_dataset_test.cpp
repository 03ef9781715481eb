#include "tessera/token_files/indexed_dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>

#include "files/test_data.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/token_files/blended_samples.h"
#include "tessera/token_files/index_digests.h"
#include "tessera/token_files/indexed_dataset_writer.h"
#include "tessera/token_files/npy.h"
#include "tessera/token_files/sentence_dataset.h"
#include "tessera/token_files/token_files.h"

namespace tessera {

namespace {

/// Two documents: of two sequences, and of one.
void write_two_documents(const std::string& prefix) {
  IndexedDatasetWriter writer(prefix, TokenType::U16);
  const std::vector<std::int32_t> ids = {7, 8, 9, 10, 11}, lengths = {2, 3}, other = {12};
  writer.add_document(ids, lengths);
  writer.add_sequence(other);
  writer.end_document();
  writer.finish();
}

template <typename T>
std::string with(std::string bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
  return bytes;
}

}  // namespace

TEST(IndexedDataset, ReadsPartsOfSequences) {
  const TestFolder folder;
  const std::string prefix = folder / "two";
  write_two_documents(prefix);
  const IndexedDataset data(prefix);
  EXPECT_EQ(data.num_sequences(), 3);
  EXPECT_EQ(data.num_documents(), 2);
  EXPECT_EQ(data.num_tokens(), 6);
  EXPECT_EQ(data.lengths(), (std::vector<std::int32_t>{2, 3, 1}));
  EXPECT_EQ(data.boundaries(), (std::vector<std::int64_t>{0, 2, 3}));
  EXPECT_EQ(data.read(1, 100), (std::vector<std::int32_t>{9, 10, 11}));
  std::vector<std::int32_t> out(2);
  data.read(1, 1, 100, out);
  EXPECT_EQ(out, (std::vector<std::int32_t>{10, 11}));
  EXPECT_EQ(data.read_up_to(0, 1, 100, out), 1u);
  EXPECT_EQ(out[0], 8);
}

TEST(IndexedDataset, RefusesWhatIsDamaged) {
  const TestFolder folder;
  const std::string prefix = folder / "two";
  write_two_documents(prefix);
  const std::string index = read_file(prefix + ".idx"), bin = read_file(prefix + ".bin");
  const std::size_t lengths = 34, pointers = lengths + 12, boundaries = pointers + 24;
  ASSERT_EQ(index.size(), boundaries + 24);
  const struct {
    const char* name;
    std::string index, bin;
    const char* says;
  } cases[] = {
      {"another file", "x" + index, bin, "does not begin with MMIDIDX"},
      {"the older kind", "TNTIDX" + index, bin, "TNTIDX"},
      {"a version to come", with<std::uint64_t>(index, 9, 2), bin, "version 2 where 1"},
      {"no such type", with<std::uint8_t>(index, 17, 9), bin, "token type 9"},
      {"reals", with<std::uint8_t>(index, 17, 6), bin + std::string(36, 'x'), "float64"},
      {"cut short", index.substr(0, index.size() - 1), bin, "too few for the 3 sequences"},
      {"too long", index + "xx", bin, "but its header needs"},
      {"modes of images", index + std::string(3, '\0'), bin, "mode for each sequence"},
      {"a count that overflows", with<std::uint64_t>(index, 18, ~std::uint64_t{0} / 12), bin,
       "too few for the"},
      {"no boundaries", with<std::uint64_t>(index.substr(0, boundaries), 26, 0), bin,
       "no document boundary"},
      {"a negative length", with<std::int32_t>(index, lengths, -1), bin, "has -1 tokens"},
      {"a sequence within another", with<std::int64_t>(index, pointers + 8, 2), bin,
       "before the one before it ends, at 4"},
      {"a sequence behind .bin", with<std::int64_t>(index, pointers + 16, 1 << 20), bin,
       ".bin has 12 bytes"},
      {"a pointer that overflows", with<std::int64_t>(index, pointers + 16, INT64_MAX), bin,
       ".bin has 12 bytes"},
      {"a long last sequence", with<std::int32_t>(index, lengths + 8, INT32_MAX), bin,
       ".bin has 12 bytes"},
      {".bin cut short", index, bin.substr(1), ".bin has 11 bytes"},
      {".bin of another run", index, bin + "xx", "expects 12 bytes in .bin, which has 14"},
      {"documents that do not begin", with<std::int64_t>(index, boundaries, 1), bin,
       "document 0 begins with sequence 1 where 0"},
      {"documents that go back", with<std::int64_t>(index, boundaries + 8, -2), bin,
       "document 1 begins with sequence -2"},
      {"documents behind the end", with<std::int64_t>(index, boundaries + 16, 4), bin,
       "document 2 begins with sequence 4"},
      {"documents that leave some out", with<std::int64_t>(index, boundaries + 16, 2), bin,
       "end with sequence 2"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    write_atomically(folder / "bad.idx", c.index);
    write_atomically(folder / "bad.bin", c.bin);
    const std::string says = message_of([&] { IndexedDataset(folder / "bad"); });
    EXPECT_NE(says.find(c.says), std::string::npos) << says;
  }
}

TEST(IndexedDataset, RefusesIdsThatTheModelLacks) {
  const TestFolder folder;
  write_two_documents(folder / "two");
  const IndexedDataset data(folder / "two");
  EXPECT_EQ(message_of([&] { data.read(1, 11); }),
            text("'", folder / "two",
                 ".bin': token 2 of sequence 1 is 11, but the model has ids from 0 to 10; give the "
                 "vocab-size of the tokenizer that made the files, or files for this one"));
}

// No signal, as of a file that is mapped: an error with words.
TEST(IndexedDataset, SaysThatAFileWasCutShortWhileItWasOpen) {
  const TestFolder folder;
  write_two_documents(folder / "two");
  const IndexedDataset data(folder / "two");
  std::filesystem::resize_file(folder / "two.bin", 4);
  EXPECT_EQ(data.read(0, 100), (std::vector<std::int32_t>{7, 8}));
  EXPECT_NE(message_of([&] { data.read(2, 100); }).find("it was cut short"), std::string::npos);
  std::filesystem::resize_file(folder / "two.idx", 40);
  EXPECT_NE(message_of([&] { data.read(0, 100); }).find("it was cut short"), std::string::npos);
}

TEST(TokenFiles, AreToldFromTexts) {
  const TestFolder folder;
  write_two_documents(folder / "a");
  write_two_documents(folder / "b");
  write_atomically(folder / "text.txt", "text");
  std::filesystem::create_directories(folder / "a/cache");  // where sample indices are kept
  const auto names = [&](std::vector<std::string> words) {
    for (std::string& word : words)
      if (word.size() > 3 || word == "a" || word == "b") word = folder / word;
    return names_token_files(words);
  };
  EXPECT_TRUE(names({"a"}));
  EXPECT_TRUE(names({"a", "b"}));
  EXPECT_TRUE(names({"0.3", "a", "0.7", "b"}));
  EXPECT_FALSE(names({"text.txt"}));
  EXPECT_FALSE(names({"text.txt", "text.txt"}));
  EXPECT_FALSE(names({"absent"}));
  EXPECT_FALSE(names({}));
  const struct {
    std::vector<std::string> words;
    const char* says;
  } refused[] = {
      {{"a", "text.txt"}, "is not a prefix of token files"},
      {{"1", "a", "2", "absent"}, "is not a prefix of token files"},
      {{"1", "a", "b"}, "give a weight before each prefix, or none"},
      {{"1", "a", "b", "a"}, "1 weights for 2 prefixes"},
      {{"0", "a", "1", "b"}, "weight 0"},
      {{"nan", "a", "1", "b"}, "weight nan"},
  };
  for (const auto& c : refused) {
    const std::string says = message_of([&] { names(c.words); });
    EXPECT_NE(says.find(c.says), std::string::npos) << says;
  }
}

TEST(TokenFiles, IndicesThatDoNotFitAreMadeAnew) {
  const TestFolder folder;
  const std::string prefix = folder / "two";
  write_two_documents(prefix);
  const GptDatasetChoice choice{.part = DataPart::Train,
                                .split = "1",
                                .context = 2,
                                .vocabulary = 100,
                                .samples = 4,
                                .seed = 1,
                                .cache = folder / "kept"};
  const auto files = std::make_shared<const IndexedDataset>(prefix);
  const auto samples_of = [&](std::vector<std::string>& notices) {
    const GptDataset data(files, choice, notices);
    std::vector<std::int32_t> out, one(3);
    for (std::int64_t k = 0; k < data.size(); ++k) {
      data.read(k, one);
      out.insert(out.end(), one.begin(), one.end());
    }
    return out;
  };
  std::vector<std::string> none;
  const std::vector<std::int32_t> expected = samples_of(none);
  EXPECT_TRUE(none.empty());
  std::string shuffle;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "kept")) {
    if (entry.path().string().ends_with("shuffle_index.npy")) shuffle = entry.path().string();
  }
  const std::string bytes = read_file(shuffle);
  const struct {
    std::string bytes;
    const char* says;
  } cases[] = {
      {bytes.substr(0, bytes.size() - 1), "bytes of data"},
      {npy_header(NpyType::U32, std::vector<std::int64_t>{1}) + "abcd", "where"},
      {"", "is not a .npy file"},
      {bytes.substr(0, 10) + std::string(118, '{'), "not a NumPy dictionary"},
      {bytes.substr(0, bytes.size() - 4) + "\xff\xff\xff\x7f", "no digests"},
  };
  for (const auto& c : cases) {
    write_atomically(shuffle, c.bytes);
    // As files of megatron-core, which has none.
    std::filesystem::remove(shuffle.substr(0, shuffle.rfind('-') + 1) + kDigests);
    std::vector<std::string> notices;
    EXPECT_EQ(samples_of(notices), expected);
    ASSERT_EQ(notices.size(), 1u);
    EXPECT_NE(notices[0].find(c.says), std::string::npos) << notices[0];
    EXPECT_EQ(read_file(shuffle), bytes);
  }
  std::filesystem::last_write_time(shuffle, std::filesystem::file_time_type::min());
  std::vector<std::string> notices;
  EXPECT_EQ(samples_of(notices), expected);
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_NE(notices[0].find("older than the token files"), std::string::npos) << notices[0];
}

namespace {

/// The only file in a folder whose name ends so.
std::string file_that_ends(const std::string& folder, std::string_view end) {
  std::string out;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.path().string().ends_with(end)) continue;
    EXPECT_EQ(out, "");
    out = entry.path().string();
  }
  return out;
}

/// Damages the file: cut, with `wrong` at its end, with zeros in the middle; and again without its
/// digests, as megatron-core writes it. Each time it is made anew. `use` tells its notices.
void expect_made_anew(const std::string& path, const std::string& wrong,
                      const std::function<std::vector<std::string>()>& use) {
  const std::string bytes = read_file(path);
  const std::string digests = path.substr(0, path.rfind('-') + 1) + kDigests;
  std::string zeros = bytes;
  std::fill(zeros.begin() + 128, zeros.end(), '\0');  // behind the header
  for (const std::string& damaged : {bytes.substr(0, bytes.size() - 1),
                                     bytes.substr(0, bytes.size() - wrong.size()) + wrong, zeros}) {
    for (const bool proven : {true, false}) {
      SCOPED_TRACE(proven);
      write_atomically(path, damaged);
      if (!proven) std::filesystem::remove(digests);
      const std::vector<std::string> notices = use();
      ASSERT_EQ(notices.size(), 1u);
      EXPECT_NE(notices[0].find("are rebuilt"), std::string::npos) << notices[0];
      EXPECT_EQ(read_file(path), bytes);
      EXPECT_EQ(use(), std::vector<std::string>{});
    }
  }
  // Files of another program that are right are taken as they are, and get digests.
  const auto time = std::filesystem::last_write_time(path);
  std::filesystem::remove(digests);
  EXPECT_EQ(use(), std::vector<std::string>{});
  EXPECT_TRUE(std::filesystem::exists(digests));
  EXPECT_EQ(std::filesystem::last_write_time(path), time);
}

}  // namespace

TEST(TokenFiles, MapsOfSentencesThatDoNotFitAreMadeAnew) {
  const TestFolder folder;
  IndexedDatasetWriter writer(folder / "sentences", TokenType::U16);
  for (std::int32_t d = 0; d < 5; ++d) {
    for (std::int32_t s = 0; s < 4; ++s) writer.add_sequence(std::vector<std::int32_t>{5, 6, d});
    writer.end_document();
  }
  writer.finish();
  const auto files = std::make_shared<const IndexedDataset>(folder / "sentences");
  for (const std::int64_t samples : {2, 40}) {  // of one epoch, and of several
    const GptDatasetChoice choice{.split = "1",
                                  .context = 12,
                                  .vocabulary = 100,
                                  .samples = samples,
                                  .cache = folder / text("kept", samples)};
    const auto use = [&] {
      std::vector<std::string> notices;
      const SentenceDataset data(files, choice, notices);
      EXPECT_GE(data.size(), samples);
      for (std::int64_t k = 0; k < data.size(); ++k) EXPECT_GE(data.read(k).sentences.size(), 2u);
      return notices;
    };
    EXPECT_EQ(use(), std::vector<std::string>{});
    const std::string path = file_that_ends(choice.cache, "sample_index.npy");
    expect_made_anew(path, "\xff\xff\xff\x7f", use);
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::min());
    ASSERT_EQ(use().size(), 1u);
  }
}

TEST(TokenFiles, BlendsThatDoNotFitAreMadeAnew) {
  const TestFolder folder;
  write_two_documents(folder / "a");
  write_two_documents(folder / "b");
  TokenFiles files;
  files.train = open_token_source(std::vector<std::string>{"1", folder / "a", "2", folder / "b"});
  files.split = "1";
  files.cache = folder / "kept";
  const auto use = [&] {
    std::vector<std::string> notices;
    const TokenSamples samples(files, {.context = 2, .vocabulary = 100, .samples = 5}, notices);
    for (std::int64_t k = 0; k < samples.size(); ++k) samples.at(k);
    return notices;
  };
  EXPECT_EQ(use(), std::vector<std::string>{});
  expect_made_anew(file_that_ends(files.cache, "-dataset_index.npy"), "\2", use);
  expect_made_anew(file_that_ends(files.cache, "-dataset_sample_index.npy"), "\xff", use);
}

}  // namespace tessera
