/// Pairs of lines: which part they belong to, what is padded, what is left out, what is refused.

#include "tessera/data/pairs.h"
#include "tessera/data/dataset.h"

#include <gtest/gtest.h>

#include <fstream>

#include "files/test_data.h"

namespace tessera {
namespace {

constexpr PairOptions kOptions = {.source = 4, .target = 5, .pad = 256, .start = 257, .end = 258};

struct PairText {
  TestFolder folder;
  Dataset data;
  explicit PairText(const std::string& bytes, double held_out = 0, const std::string& valid = "")
      : data(load(bytes, held_out)) {
    if (valid.empty()) return;
    std::ofstream(folder / "valid.txt") << valid;
    hold_out(data, {folder / "valid.txt"});
  }
  Dataset load(const std::string& bytes, double held_out) const {
    std::ofstream(folder / "pairs.txt") << bytes;
    return load_dataset({folder / "pairs.txt"}, VocabularyKind::Bytes, held_out);
  }
};

/// "ab>|<cd|cd>": source, ids and labels, with < > . and - for start, end, padding and labels that
/// do not count.
std::string shown(const Pairs& pairs, std::int64_t i) {
  std::vector<std::int32_t> source(4), ids(5), labels(5);
  pairs.fill(i, source, ids, labels);
  std::string out;
  for (const auto* row : {&source, &ids, &labels}) {
    if (!out.empty()) out += '|';
    for (const std::int32_t id : *row) {
      out += id == kIgnoredLabel ? '-'
             : id == 256         ? '.'
             : id == 257         ? '<'
             : id == 258         ? '>'
                                 : static_cast<char>(id);
    }
  }
  return out;
}

TEST(PairsFirst, StandsBeforeSourceAndTarget) {
  const PairText text("ab\tcd\nabc\tc\na\tcde\n");
  PairOptions options = kOptions;
  options.first = '*';
  const Pairs pairs(text.data, DataPart::Train, options);
  EXPECT_EQ(pairs.left_out(), 1) << "a source that has no room for what is around it";
  ASSERT_EQ(pairs.size(), 2);
  EXPECT_EQ(shown(pairs, 0), "*ab>|<*cd.|*cd>-");
  EXPECT_EQ(shown(pairs, 1), "*a>.|<*cde|*cde>");
}

/// Each side by itself: a tokenizer may leave tabs and lines out.
TEST(PairsOfATokenizer, AreThoseOfTheText) {
  const TestFolder folder;
  std::ofstream(folder / "vocab.txt") << "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\nc\n##c\n";
  std::ofstream(folder / "pairs.txt") << "a b\tbc\nb\tq\nc c\ta\nbc\tb a\n";
  const Vocabulary vocabulary = Vocabulary::tokenizer(Tokenizer::load(folder / "vocab.txt"));
  const PairOptions options = {.source = 4, .target = 4, .pad = 0, .start = 2, .end = 3};
  const auto ids = [&](const Pairs& pairs, std::int64_t i) {
    std::vector<std::int32_t> source(4), target(4), labels(4);
    pairs.fill(i, source, target, labels);
    return std::pair(source, labels);
  };
  using Ids = std::vector<std::int32_t>;
  Dataset data = load_dataset({folder / "pairs.txt"}, vocabulary, 0.4);
  const Pairs train(data, DataPart::Train, options), held_out(data, DataPart::Valid, options);
  ASSERT_EQ(train.size(), 3);
  EXPECT_EQ(ids(train, 0), std::pair(Ids({4, 5, 3, 0}), Ids({5, 7, 3, kIgnoredLabel})));
  EXPECT_EQ(ids(train, 1).second, Ids({1, 3, kIgnoredLabel, kIgnoredLabel}));
  ASSERT_EQ(held_out.size(), 1);
  EXPECT_EQ(ids(held_out, 0), std::pair(Ids({5, 7, 3, 0}), Ids({5, 4, 3, kIgnoredLabel})));
  std::ofstream(folder / "valid.txt") << "a\ta\nb\tb\tb\n";
  hold_out(data, {folder / "valid.txt"});
  EXPECT_EQ(Pairs(data, DataPart::Train, options).size(), 4);
  const std::string message = message_of([&] { Pairs(data, DataPart::Valid, options); });
  EXPECT_EQ(message, text("line 2 of '", folder / "valid.txt",
                          "' has 2 tabs; a pair is a source, one tab and a target"));
}

std::vector<std::string> all_pairs(const Dataset& data, DataPart part) {
  const Pairs pairs(data, part, kOptions);
  std::vector<std::string> out;
  for (std::int64_t i = 0; i < pairs.size(); ++i) out.push_back(shown(pairs, i));
  return out;
}

TEST(Pairs, AreSourceTargetAndLabels) {
  const PairText text("ab\tcd\nabc\tcdef\n\tx\n");
  EXPECT_EQ(all_pairs(text.data, DataPart::Train),
            (std::vector<std::string>{"ab>.|<cd..|cd>--", "abc>|<cdef|cdef>", ">...|<x...|x>---"}));
  EXPECT_EQ(shown(Pairs(text.data, DataPart::Train, kOptions), -1), "....|.....|-----");
}

TEST(Pairs, ThatDoNotFitAreLeftOutAndCounted) {
  const PairText text("abcd\tc\na\tcdefg\nabc\tcdef");
  const Pairs pairs(text.data, DataPart::Train, kOptions);
  EXPECT_EQ(pairs.size(), 1);
  EXPECT_EQ(pairs.left_out(), 2);
  EXPECT_EQ(shown(pairs, 0), "abc>|<cdef|cdef>") << "the last line needs no end";
}

/// Wherever the border falls, every line is in one part, whole.
TEST(Pairs, ALineBelongsToThePartInWhichItBegins) {
  const std::string bytes = "a\tb\ncc\td\ne\tff\n";
  for (std::size_t held = 0; held < bytes.size(); ++held) {
    const PairText text(bytes, static_cast<double>(held) / static_cast<double>(bytes.size()));
    const std::size_t border = text.data.texts().tokens.train().size();
    const std::size_t train = border <= 4 ? 1 : border <= 9 ? 2 : 3;
    EXPECT_EQ(Pairs(text.data, DataPart::Train, kOptions).size(), static_cast<std::int64_t>(train));
    if (train == 3) continue;
    EXPECT_EQ(Pairs(text.data, DataPart::Valid, kOptions).size(),
              static_cast<std::int64_t>(3 - train));
  }
}

TEST(Pairs, ATextOfItsOwnIsValidatedWhole) {
  const PairText text("a\tb\nc\td", 0, "e\tf\ng\th");
  EXPECT_EQ(all_pairs(text.data, DataPart::Train),
            (std::vector<std::string>{"a>..|<b...|b>---", "c>..|<d...|d>---"}));
  EXPECT_EQ(all_pairs(text.data, DataPart::Valid),
            (std::vector<std::string>{"e>..|<f...|f>---", "g>..|<h...|h>---"}));
}

TEST(Pairs, WhatIsNoPairIsNamed) {
  const auto refused = [](const PairText& text, DataPart part) {
    return message_of([&] { Pairs(text.data, part, kOptions); });
  };
  const PairText none("a\tb\n\nc\td\n"), two("a\tb\tc\n");
  EXPECT_EQ(refused(none, DataPart::Train),
            text("line 2 of '", none.folder / "pairs.txt",
                 "' has no tab; a pair is a source, one tab and a target"));
  EXPECT_EQ(refused(two, DataPart::Train),
            text("line 1 of '", two.folder / "pairs.txt",
                 "' has 2 tabs; a pair is a source, one tab and a target"));
  const PairText late("a\tb\nc\td\nef\n", 0.2), valid("a\tb\n", 0, "c\td\ne");
  EXPECT_EQ(refused(late, DataPart::Train), "");
  EXPECT_EQ(refused(late, DataPart::Valid),
            text("line 3 of '", late.folder / "pairs.txt",
                 "' has no tab; a pair is a source, one tab and a target"));
  EXPECT_EQ(refused(valid, DataPart::Valid),
            text("line 2 of '", valid.folder / "valid.txt",
                 "' has no tab; a pair is a source, one tab and a target"));
  const PairText all("a\tb\n", 0.1), large("abcdef\tb\n");
  EXPECT_EQ(refused(all, DataPart::Valid),
            text("the held-out part of ", name_of(all.data.texts().files),
                 " has no pair; use a longer text, hold out more of it"));
  EXPECT_EQ(refused(large, DataPart::Train),
            text("the training part of ", name_of(large.data.texts().files),
                 " has 1 pair, of which none fits into a source of 4 and a target of 5 tokens; "
                 "use a longer text, or raise source-context and context"));
}

/// Of several files, the one in which the line is.
TEST(Pairs, WhatIsNoPairIsNamedInItsFile) {
  TestFolder folder;
  std::ofstream(folder / "a.txt") << "a\tb\nc\td";
  std::ofstream(folder / "b.txt") << "e\tf\n";
  std::ofstream(folder / "c.txt") << "g\th\nij\n";
  const Dataset data = load_dataset({folder.path()}, VocabularyKind::Characters, 0);
  EXPECT_EQ(message_of([&] { Pairs(data, DataPart::Train, kOptions); }),
            text("line 2 of '", folder / "c.txt",
                 "' has no tab; a pair is a source, one tab and a target"));
}

TEST(Pairs, ATextWithoutTabsOrNewlinesHasNoPair) {
  TestFolder folder;
  std::ofstream(folder / "plain.txt") << "abc";
  const Dataset data = load_dataset({folder / "plain.txt"}, VocabularyKind::Characters, 0);
  EXPECT_EQ(message_of([&] { Pairs(data, DataPart::Train, kOptions); }),
            text("line 1 of '", folder / "plain.txt",
                 "' has no tab; a pair is a source, one tab and a target"));
}

}  // namespace
}  // namespace tessera
