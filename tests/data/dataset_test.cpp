/// Text files to a vocabulary and a token stream.

#include "tessera/data/dataset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "files/test_data.h"
#include "tessera/data/pairs.h"
#include "tessera/files/file.h"

namespace tessera {
namespace {

using Tokens = std::vector<std::int32_t>;

TEST(Dataset, TinyShakespeareHasItsKnownCounts) {
  const std::string path = test_data("tinyshakespeare/input.txt");
  if (path.empty()) GTEST_SKIP() << no_test_data("tinyshakespeare/input.txt");
  const Dataset data = load_dataset({path}, VocabularyKind::Characters);
  EXPECT_EQ(data.vocabulary.size(), 65);
  EXPECT_EQ(data.texts().tokens.all().size(), 1'115'394u);
  EXPECT_EQ(data.texts().tokens.train().size(), 1'003'854u);
  EXPECT_EQ(data.texts().tokens.held_out().size(), 111'540u);
  EXPECT_EQ(data.vocabulary.decode(data.texts().tokens.all()), read_file(path));
  // nanoGPT's encoding of the first words
  EXPECT_EQ(Tokens(data.texts().tokens.all().begin(), data.texts().tokens.all().begin() + 5),
            (Tokens{18, 47, 56, 57, 58}));
}

TEST(Dataset, AnotherVocabularyMustKnowTheText) {
  const TestFolder folder;
  write_atomically(folder / "a", "abba");
  write_atomically(folder / "b", "cab");
  const Dataset a = load_dataset({folder / "a"}, VocabularyKind::Characters, 0);
  EXPECT_EQ(load_dataset({folder / "a"}, a.vocabulary, 0).digest, a.digest);
  EXPECT_EQ(message_of([&] { load_dataset({folder / "b"}, a.vocabulary); }),
            "character 0 (byte 0) of the text, 'c', U+0063, is not in the vocabulary of 2 "
            "characters; remove it, or train on a text that has it\n    in the text of '" +
                folder.path() + "/b'");
}

/// The vocabulary of a run is learned from what trains alone.
TEST(Dataset, TokensAreLearnedFromWhatTrains) {
  const TestFolder folder;
  std::string train, held_out;
  for (int i = 0; i < 90; ++i) train += "ab cd\n";
  for (int i = 0; i < 10; ++i) held_out += "xyxy \n";
  write_atomically(folder / "a", train + held_out);
  const Dataset data = load_dataset({folder / "a"}, {VocabularyKind::Bpe, 1000}, 0.1);
  EXPECT_EQ(data.vocabulary, Vocabulary::bpe(train, 1000));
  EXPECT_EQ(data.vocabulary.decode(data.texts().tokens.all()), train + held_out);
  EXPECT_EQ(load_dataset({folder / "a"}, data.vocabulary, 0.1).vocabulary, data.vocabulary);
  EXPECT_NE(load_dataset({folder / "a"}, {VocabularyKind::Bpe, 1000}, 0).vocabulary,
            data.vocabulary);
}

TEST(Dataset, PairsOfLearnedTokens) {
  const TestFolder folder;
  write_atomically(folder / "a", "un deux\tone two\nun deux\tone two\n");
  const Dataset data = load_dataset({folder / "a"}, {VocabularyKind::Bpe, 1000}, 0);
  const Pairs pairs(data, DataPart::Train, {8, 8, 2000, 2001, 2002});
  EXPECT_EQ(pairs.size(), 2);
  Tokens source(8), ids(8), labels(8);
  pairs.fill(0, source, ids, labels);
  EXPECT_EQ(data.vocabulary.decode(Tokens(source.begin(), std::ranges::find(source, 2002))),
            "un deux");
  EXPECT_EQ(data.vocabulary.decode(Tokens(labels.begin(), std::ranges::find(labels, 2002))),
            "one two");
}

}  // namespace
}  // namespace tessera
