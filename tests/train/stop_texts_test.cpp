#include "tessera/models/stop_texts.h"

#include <gtest/gtest.h>

#include "tessera/train/written_sample.h"

namespace tessera {
namespace {

/// What is told of `text` piece by piece, each `size` bytes.
std::string told_in_pieces(std::vector<std::string> stops, const std::string& text,
                           std::size_t size) {
  StopTexts stop(std::move(stops));
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += size) out += stop.add(text.substr(at, size));
  return out + stop.rest();
}

TEST(StopTexts, EndBeforeTheFirstOfThem) {
  struct Case {
    std::vector<std::string> stops;
    std::string text, want;
  };
  const Case cases[] = {
      {{}, "all of it", "all of it"},
      {{"\n"}, "a line\nanother", "a line"},
      {{"END"}, "the ENtry ENEND of it", "the ENtry EN"},
      {{"of", "the end"}, "at the end of it", "at "},
      {{"aab"}, "aaab", "a"},
      {{"never"}, "it nev", "it nev"},
      {{"x"}, "xyz", ""},
  };
  for (const Case& c : cases)
    for (const std::size_t size : {1, 2, 3, 100})
      EXPECT_EQ(told_in_pieces(c.stops, c.text, size), c.want) << c.text << " by " << size;
}

/// What may begin a stop is told only when it does not.
TEST(StopTexts, HoldBackNoMoreThanMayBeginOne) {
  StopTexts stop({"END"});
  EXPECT_EQ(stop.add("a E"), "a ");
  EXPECT_EQ(stop.add("N"), "");
  EXPECT_EQ(stop.add("try"), "ENtry");
  EXPECT_FALSE(stop.stopped());
  EXPECT_EQ(stop.add(" END more"), " ");
  EXPECT_TRUE(stop.stopped());
  EXPECT_EQ(stop.add("END"), "");
  EXPECT_EQ(stop.rest(), "");
}

/// Where the run's documents end, its texts do.
TEST(TextsToAnEnd, EndAtTheTokenThatEndsDocuments) {
  RunConfig config;
  config.model.vocabulary = 256;
  TextWriting writing;
  const Vocabulary bytes = Vocabulary::bytes();
  EXPECT_EQ(writing_to_an_end(writing, config, bytes).end, std::nullopt);
  config.eod_token = 10;
  EXPECT_EQ(writing_to_an_end(writing, config, bytes).end, 10);
  config.model.vocabulary = 8;
  EXPECT_EQ(writing_to_an_end(writing, config, bytes).end, std::nullopt) << "the model lacks it";
  config.model.vocabulary = 256;
  writing.source = 4, writing.end = 3;
  EXPECT_EQ(writing_to_an_end(writing, config, bytes).end, 3) << "that of translations stays";
}

TEST(TextsToAnEnd, AreWrittenTogetherWhereTheyBeginAlike) {
  const auto of = [](std::size_t tokens) { return Beginning{{}, Tokens(tokens, 1)}; };
  EXPECT_EQ(most_alike({of(1)}), 1);
  EXPECT_EQ(most_alike({of(1), of(2), of(2), of(2), of(1), of(1)}), 3);
}

}  // namespace
}  // namespace tessera
