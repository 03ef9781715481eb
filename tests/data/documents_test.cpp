/// Documents in samples, alone and packed; samples of like length in buckets.

#include "tessera/data/documents.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <set>

#include "files/test_data.h"
#include "tessera/base/text.h"
#include "tessera/data/dataset.h"
#include "tessera/data/rows.h"
#include "tessera/tensor/ignored_label.h"

namespace tessera {
namespace {

TEST(BestFitDecreasing, FillsBins) {
  const struct {
    const char* what;
    std::vector<std::int64_t> lengths;
    std::vector<std::vector<std::int64_t>> bins;
  } cases[] = {
      {"nothing", {}, {}},
      {"one", {3}, {{0}}},
      {"a whole bin", {8, 8}, {{0}, {1}}},
      {"the fullest bin that has room", {5, 6, 2, 3}, {{0, 3}, {1, 2}}},
      {"the longest first", {2, 2, 2, 2, 6, 6}, {{0, 4}, {1, 5}, {2, 3}}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    auto bins = best_fit_decreasing(c.lengths, 8);
    std::ranges::sort(bins);
    // Which of several equal things lies where does not matter.
    const auto lengths_in = [&](const std::vector<std::vector<std::int64_t>>& all) {
      std::multiset<std::multiset<std::int64_t>> out;
      for (const auto& bin : all) {
        std::multiset<std::int64_t> one;
        for (const std::int64_t i : bin) one.insert(c.lengths[static_cast<std::size_t>(i)]);
        out.insert(one);
      }
      return out;
    };
    EXPECT_EQ(lengths_in(bins), lengths_in(c.bins));
  }
}

/// Everything is in one bin, and none is too full.
TEST(BestFitDecreasing, LosesNothing) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    const auto room = static_cast<std::int64_t>(1 + random() % 40);
    std::vector<std::int64_t> lengths(random() % 100);
    for (std::int64_t& length : lengths)
      length = static_cast<std::int64_t>(1 + random() % static_cast<std::uint64_t>(room));
    const auto bins = best_fit_decreasing(lengths, room);
    std::vector<int> seen(lengths.size());
    std::vector<std::int64_t> full;
    for (const auto& bin : bins) {
      EXPECT_TRUE(std::ranges::is_sorted(bin));
      std::int64_t sum = 0;
      for (const std::int64_t i : bin) {
        ++seen[static_cast<std::size_t>(i)];
        sum += lengths[static_cast<std::size_t>(i)];
      }
      EXPECT_LE(sum, room);
      full.push_back(sum);
    }
    EXPECT_TRUE(std::ranges::all_of(seen, [](int n) { return n == 1; }));
    const auto half_empty = [&](std::int64_t sum) { return 2 * sum <= room; };
    EXPECT_LE(std::ranges::count_if(full, half_empty), 1) << "two would have been joined";
  }
}

struct DocumentData {
  TestFolder folder;
  Dataset data;
  explicit DocumentData(const std::string& rows, double held_out = 0)
      : data(load(rows, held_out)) {}
  Dataset load(const std::string& rows, double held_out) const {
    std::ofstream(folder / "rows.csv") << "text\n" << rows;
    return load_rows({.paths = {folder / "rows.csv"}, .columns = {"text"}, .held_out = held_out},
                     VocabularyChoice(VocabularyKind::Bytes));
  }
};

/// "ab/bc/01/00": ids, labels, positions and first_seen of a sample; . is padding and \ a new line.
std::string shown_sample(const Samples& samples, std::int64_t number, std::int64_t width) {
  BatchInputs batch("test");
  std::vector<std::vector<std::int32_t>> rows(
      4, std::vector<std::int32_t>(static_cast<std::size_t>(width), -7));
  const char* const names[] = {"ids", "labels", "positions", "first_seen"};
  for (std::size_t i = 0; i < rows.size(); ++i)
    batch.add(names[i], {DType::I32, {1, width}, {}},
              std::as_writable_bytes(std::span(rows[i])).data());
  batch.begin();
  samples.fill(number, 1, batch);
  batch.require_filled();
  std::string out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i > 0) out += '/';
    for (const std::int32_t value : rows[i])
      out += i >= 2                                 ? static_cast<char>('0' + value)
             : value == kIgnoredLabel || value == 0 ? '.'
             : value == '\n'                        ? '\\'
                                                    : static_cast<char>(value);
  }
  return out;
}

std::vector<std::string> held_out_samples(const Dataset& data, Packing packing) {
  const auto samples =
      document_samples(data, DataPart::Valid,
                       {.context = 6, .packing = packing, .positions = true, .first_seen = true});
  std::vector<std::string> out;
  for (std::int64_t i = 0; i <= samples->size(); ++i) out.push_back(shown_sample(*samples, i, 6));
  return out;
}

TEST(Documents, AreSamples) {
  const DocumentData all("x\nab\nabcdefgh\nc\nde\n", 0.8);
  EXPECT_EQ(
      held_out_samples(all.data, Packing::None),
      (std::vector<std::string>{"ab..../b\\..../010123/002222", "abcdef/bcdefg/012345/000000",
                                "c...../\\...../001234/011111", "de..../e\\..../010123/002222",
                                "....../....../012345/000000"}));
  EXPECT_EQ(
      held_out_samples(all.data, Packing::Bfd),
      (std::vector<std::string>{"abcde./b\\\\e\\./010010/002335", "abcdef/bcdefg/012345/000000",
                                "....../....../012345/000000"}));
}

TEST(Documents, ThatTrainAreThereOnceInAnEpoch) {
  std::string rows;
  for (int i = 0; i < 23; ++i)
    rows += std::string(static_cast<std::size_t>(1 + i % 5), static_cast<char>('a' + i)) + "\n";
  const DocumentData all(rows);
  for (const Packing packing : {Packing::None, Packing::Bfd}) {
    const auto samples = document_samples(
        all.data, DataPart::Train,
        {.context = 6, .packing = packing, .seed = 5, .positions = true, .first_seen = true});
    std::vector<std::multiset<char>> epochs(2);
    std::vector<std::string> order;
    for (std::int64_t i = 0; i < 2 * samples->size(); ++i) {
      const std::string ids = shown_sample(*samples, i, 6).substr(0, 6);
      order.push_back(ids);
      for (const char c : ids) epochs[static_cast<std::size_t>(i / samples->size())].insert(c);
    }
    for (auto& epoch : epochs) epoch.erase('.');
    EXPECT_EQ(epochs[0], epochs[1]);
    EXPECT_EQ(epochs[0].size(), 66u) << "a position for each character";
    EXPECT_FALSE(
        std::equal(order.begin(), order.begin() + samples->size(), order.begin() + samples->size()))
        << "in another order";
  }
}

TEST(Documents, TellWhatPaddingTakes) {
  const DocumentData all("abc\nabc\nabcdefgh\n\"\"\n");
  const auto told = [&](Packing packing) {
    return document_samples(all.data, DataPart::Train, {.context = 6, .packing = packing})
        ->notice();
  };
  EXPECT_EQ(told(Packing::None),
            "packing none: 3 documents of the training part are in 3 samples of 6 positions, of "
            "which padding takes 33.3 %; 1 is longer and cut");
  EXPECT_EQ(told(Packing::Bfd),
            "packing bfd: 3 documents of the training part are in 2 samples of 6 positions, of "
            "which padding takes 0 % (a document in each: 33.3 %); 1 is longer and cut");
  DocumentData tested("abc\nabc\nabcdefgh\n\"\"\n");
  std::get<Texts>(tested.data.content).rows.train = 0;
  const std::string told_of_test =
      document_samples(tested.data, DataPart::Valid, {.context = 6})->notice();
  EXPECT_TRUE(told_of_test.starts_with("packing none: 3 documents are in 3 samples of"))
      << told_of_test;
  EXPECT_NE(message_of([&] {
              document_samples(all.data, DataPart::Valid, {.context = 6, .packing = Packing::Bfd});
            }).find("has no document with a token to predict"),
            std::string::npos);
}

TEST(LengthBuckets, HaveEachSampleOnceInAnEpoch) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::int64_t> lengths(1 + random() % 80);
    for (std::int64_t& length : lengths) length = static_cast<std::int64_t>(1 + random() % 32);
    const auto batch = static_cast<std::int64_t>(1 + random() % 9);
    const LengthBuckets buckets(lengths, {{4, 12, 32}, batch}, 7);
    const LengthBuckets same(lengths, {{4, 12, 32}, batch}, 7);
    for (int epoch = 0; epoch < 2; ++epoch) {
      std::vector<int> seen(lengths.size());
      std::int64_t empty = 0;
      for (std::int64_t step = epoch * buckets.steps(); step < (epoch + 1) * buckets.steps();
           ++step) {
        const std::int64_t told = buckets.length(step * batch), room = told == 0 ? 32 : told;
        for (std::int64_t i = 0; i < batch; ++i) {
          const std::int64_t sample = buckets.sample(step * batch + i);
          EXPECT_EQ(sample, same.sample(step * batch + i));
          if (sample < 0) {
            ++empty;
            EXPECT_EQ(told, 0) << "rows are empty in the last bucket alone";
            continue;
          }
          ++seen[static_cast<std::size_t>(sample)];
          EXPECT_LE(lengths[static_cast<std::size_t>(sample)], room);
        }
      }
      EXPECT_TRUE(std::ranges::all_of(seen, [](int n) { return n == 1; }));
      EXPECT_LT(empty, batch);
    }
  }
}

TEST(LengthBuckets, TellWhatTheySave) {
  const std::vector<std::int64_t> lengths = {2, 2, 3, 4, 4, 7, 8, 9};
  const LengthBuckets buckets(lengths, {{4, 8, 16}, 2}, 1);
  EXPECT_EQ(buckets.steps(), 4);
  const std::vector<std::int64_t> tokens = {4, 8, 16};
  EXPECT_EQ(
      buckets.notice(tokens, 39),
      "buckets of up to 4, 8, 16 tokens have 4, 2, 2 samples, and one program each: 3 programs "
      "to train; padding takes 39.1 % of the tokens of an epoch (without buckets: 69.5 %)");
}

TEST(LengthBuckets, ReadTheirLengths) {
  EXPECT_EQ(parse_bucket_lengths("32,64,128"), (std::vector<std::int64_t>{32, 64, 128}));
  for (const auto& [words, message] :
       {std::pair("", "of which '' is not a number of tokens"), std::pair("32,", "of which ''"),
        std::pair("32, 64", "of which ' 64'"), std::pair("0,8", "of which '0'"),
        std::pair("64,32", "is not ascending"), std::pair("8,8", "is not ascending"),
        std::pair("99999999999999999999", "of which")}) {
    EXPECT_NE(message_of([&] { parse_bucket_lengths(words); }).find(message), std::string::npos)
        << words;
  }
}

}  // namespace
}  // namespace tessera
