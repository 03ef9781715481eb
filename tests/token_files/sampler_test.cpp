#include "tessera/token_files/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "files/test_data.h"
#include "tessera/token_files/permutation.h"
#include "tessera/token_files/samples.h"
#include "tessera/token_files/token_stream.h"

namespace tessera {
namespace {

using Ids = std::vector<std::int32_t>;

Ids counting(std::int64_t n) {
  Ids out(static_cast<std::size_t>(n));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

TEST(Epochs, AStepBelongsToTheEpochOfItsFirstSample) {
  EXPECT_EQ(place_in_epoch(0, 4, 10), (EpochPlace{1, 1}));
  EXPECT_EQ(place_in_epoch(8, 4, 10), (EpochPlace{1, 3}));  // its last two are of the second
  EXPECT_EQ(place_in_epoch(12, 4, 10), (EpochPlace{2, 1}));
  EXPECT_EQ(place_in_epoch(20, 4, 10), (EpochPlace{3, 1}));
  EXPECT_EQ(place_in_epoch(5, 20, 2), (EpochPlace{3, 1}));  // a step of many epochs
}

TEST(Permutation, EveryPointOnce) {
  for (std::uint64_t n : {1, 2, 3, 4, 5, 7, 16, 17, 63, 64, 65, 1000, 4096, 15685}) {
    std::vector<bool> seen(n, false);
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint64_t to = permute(i, n, 42, 3);
      ASSERT_LT(to, n);
      ASSERT_FALSE(seen[to]) << n;
      seen[to] = true;
    }
  }
}

TEST(Permutation, EveryPlaceIsAsLikely) {
  // Even where halves have one bit: over many streams the first point goes everywhere about equally
  // often.
  for (std::uint64_t n : {2, 3, 5, 7, 16}) {
    constexpr int kDraws = 6000;
    std::map<std::uint64_t, int> hits;
    for (int stream = 0; stream < kDraws; ++stream)
      ++hits[permute(0, n, 7, static_cast<std::uint64_t>(stream))];
    const double mean = static_cast<double>(kDraws) / static_cast<double>(n);
    double chi2 = 0;
    for (std::uint64_t i = 0; i < n; ++i) chi2 += (hits[i] - mean) * (hits[i] - mean) / mean;
    EXPECT_LT(chi2, 40) << n;  // 15 degrees of freedom: above 40 once in 2,000 tables
  }
}

TEST(Permutation, LargeDomains) {
  const std::uint64_t n = std::uint64_t{1} << 62;
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 1000; ++i) seen.insert(permute(n - 1 - i, n, 1, 0));
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_LT(*seen.rbegin(), n);
}

TEST(Sampler, AnEpochVisitsEveryWindowOnce) {
  struct Case {
    std::int64_t tokens, context;
  };
  for (const Case c : {Case{65, 8}, Case{70, 8}, Case{9, 8}, Case{100, 1}, Case{1000, 7}}) {
    SCOPED_TRACE(std::to_string(c.tokens) + " tokens by " + std::to_string(c.context));
    const Ids tokens = counting(c.tokens);
    const Sampler sampler(tokens, {c.context, 1, SampleOrder::ShuffledWindows});
    const std::int64_t windows = sampler.windows_per_epoch();
    EXPECT_EQ(windows, (c.tokens - 1) / c.context);
    for (std::int64_t epoch = 0; epoch < 5; ++epoch) {
      std::vector<std::int64_t> offsets;
      for (std::int64_t k = 0; k < windows; ++k)
        offsets.push_back(sampler.offset(epoch * windows + k));
      std::sort(offsets.begin(), offsets.end());
      EXPECT_LE(offsets.front(), (c.tokens - 1) % c.context);
      for (std::int64_t k = 0; k < windows; ++k) {
        EXPECT_EQ(offsets[static_cast<std::size_t>(k)], offsets.front() + k * c.context);
      }
      EXPECT_LE(offsets.back() + c.context + 1, c.tokens);
    }
  }
}

TEST(Sampler, OrderChangesWithEpochAndSeed) {
  const Ids tokens = counting(8 * 64 + 1);
  const auto order = [&](std::uint64_t seed, std::int64_t epoch) {
    const Sampler sampler(tokens, {8, seed, SampleOrder::ShuffledWindows});
    std::vector<std::int64_t> out;
    for (std::int64_t k = 0; k < 64; ++k) out.push_back(sampler.offset(epoch * 64 + k));
    return out;
  };
  EXPECT_EQ(order(1, 0), order(1, 0));
  EXPECT_NE(order(1, 0), order(1, 1));
  EXPECT_NE(order(1, 0), order(2, 0));
  const auto shuffled = order(1, 0);
  EXPECT_FALSE(std::is_sorted(shuffled.begin(), shuffled.end()));
}

TEST(Sampler, TheRestIsLeftOutAtDifferentPlaces) {
  const Ids tokens = counting(8 * 10 + 1 + 5);
  const Sampler sampler(tokens, {8, 3, SampleOrder::ShuffledWindows});
  std::set<std::int64_t> shifts;
  for (std::int64_t epoch = 0; epoch < 100; ++epoch) shifts.insert(sampler.offset(epoch * 10) % 8);
  EXPECT_EQ(shifts, (std::set<std::int64_t>{0, 1, 2, 3, 4, 5}));
}

TEST(Sampler, RandomOffsetsReachBothEnds) {
  const Ids tokens = counting(20);
  const Sampler sampler(tokens, {16, 5, SampleOrder::RandomOffsets});
  std::map<std::int64_t, int> hits;
  for (std::int64_t k = 0; k < 4000; ++k) ++hits[sampler.offset(k)];
  ASSERT_EQ(hits.size(), 4u);  // 20 tokens hold samples of 17 at offsets 0 to 3
  for (const auto& [offset, count] : hits)
    EXPECT_NEAR(count, 1000, 150) << offset;  // 5 standard deviations
}

TEST(Sampler, LabelsAreTheTokensOneLater) {
  const Ids tokens = counting(100);
  for (const SampleOrder order : {SampleOrder::ShuffledWindows, SampleOrder::RandomOffsets}) {
    const Sampler sampler(tokens, {8, 9, order});
    Ids ids(6 * 8), labels(6 * 8);
    sampler.fill(4, 6, ids, labels);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(ids[i], sampler.offset(4 + static_cast<std::int64_t>(i) / 8) +
                            static_cast<std::int64_t>(i) % 8);
      EXPECT_EQ(labels[i], ids[i] + 1);
    }
  }
}

TEST(Sampler, DoesNotDependOnHowSamplesAreBatched) {
  const Ids tokens = counting(1000);
  const Sampler sampler(tokens, {8, 9, SampleOrder::ShuffledWindows});
  Ids ids(12 * 8), labels(12 * 8), again(12 * 8), again_labels(12 * 8);
  sampler.fill(120, 12, ids, labels);
  for (std::size_t i = 0; i < 12; i += 3) {
    const auto part = [&](Ids& all) { return std::span(all).subspan(i * 8, 24); };
    sampler.fill(120 + static_cast<std::int64_t>(i), 3, part(again), part(again_labels));
  }
  EXPECT_EQ(ids, again);
  EXPECT_EQ(labels, again_labels);
}

TEST(Sampler, TheOrderIsForEver) {
  // Resumed runs and other machines must draw these very samples: a change here breaks every
  // checkpoint.
  const Ids tokens = counting(1'003'854);
  const auto first = [&](SampleOrder order) {
    const Sampler sampler(tokens, {64, 1337, order});
    return std::vector<std::int64_t>{sampler.offset(0), sampler.offset(1),
                                     sampler.offset(1'000'000)};
  };
  EXPECT_EQ(first(SampleOrder::ShuffledWindows), (std::vector<std::int64_t>{6471, 920967, 722124}));
  EXPECT_EQ(first(SampleOrder::RandomOffsets), (std::vector<std::int64_t>{638589, 346341, 555090}));
}

TEST(Sampler, Errors) {
  const Ids tokens = counting(2);
  EXPECT_EQ(message_of([&] {
              Sampler(tokens, {32, 0});
            }),
            "context 32 is longer than the data: a sample takes 33 tokens (one more for the last "
            "label) but the "
            "training text has 2; use a longer text, or a context of at most 1");
  EXPECT_EQ(message_of([&] {
              Sampler(tokens, {0, 0});
            }),
            "context 0 is not positive; give the tokens per sample");
  EXPECT_EQ(Sampler(tokens, {1, 0}).windows_per_epoch(), 1);
  EXPECT_EQ(parse_sample_order(to_text(SampleOrder::RandomOffsets)), SampleOrder::RandomOffsets);
}

TEST(TokenStream, Splits) {
  struct Case {
    const char* name;
    std::int64_t tokens;
    double held_out;
    std::size_t train;
  };
  const Case cases[] = {
      {"tiny Shakespeare", 1'115'394, 0.1, 1'003'854},
      {"no rounding of a whole product", 10, 0.3, 7},
      {"nothing held out", 7, 0, 7},
      {"down", 3, 0.1, 2},
      {"one token", 1, 0.1, 0},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const TokenStream stream(counting(c.tokens), c.held_out);
    EXPECT_EQ(stream.train().size(), c.train);
    EXPECT_EQ(stream.held_out().size(), static_cast<std::size_t>(c.tokens) - c.train);
  }
  EXPECT_EQ(message_of([] { TokenStream({}); }),
            "the text is empty: it has 0 tokens; give a longer text");
  EXPECT_NE(message_of([] {
              TokenStream({1, 2}, 1.0);
            }).find("held-out fraction 1 is not in [0, 1)"),
            std::string::npos);
}

TEST(EvalWindows, ScoreEveryTokenButTheFirstOnce) {
  for (const std::int64_t n : {2, 3, 8, 9, 10, 16, 17, 100}) {
    SCOPED_TRACE(n);
    const Ids tokens = counting(n);
    const EvalWindows windows(tokens, 8);
    const std::int64_t batches = windows.count() / 3 + 1;  // batches of three run over the end
    Ids ids(24), labels(24), scored;
    std::int64_t num_labels = 0;
    for (std::int64_t b = 0; b < batches; ++b) {
      num_labels += windows.fill(b * 3, 3, ids, labels);
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (labels[i] == kIgnoredLabel) {
          EXPECT_EQ(ids[i], 0);
          continue;
        }
        EXPECT_EQ(labels[i], ids[i] + 1);
        scored.push_back(labels[i]);
      }
    }
    EXPECT_EQ(windows.num_labels(), n - 1);
    EXPECT_EQ(num_labels, n - 1);
    Ids expected = counting(n);
    expected.erase(expected.begin());
    EXPECT_EQ(scored, expected);
  }
  EXPECT_EQ(message_of([] { EvalWindows({}, 8); }),
            "the held-out part has 0 tokens but validation needs at least 2 (one and its label); "
            "use a longer text or "
            "hold out more of it");
}

TEST(EvalWindows, TinyShakespeare) {
  const Ids tokens = counting(111'540);
  const EvalWindows windows(tokens, 64);
  EXPECT_EQ(windows.num_labels(), 111'539);
  EXPECT_EQ(windows.count(), 1743);  // the last holds 51 labels
}

/// A kernel would read an id outside its table as zeros.
TEST(TokenStream, IdsOutsideTheVocabularyAreRefused) {
  const std::vector<std::int32_t> good = {0, 4, 2};
  EXPECT_NO_THROW(require_ids(good, 5, "the prompt"));
  for (const std::int32_t bad : {-1, 5}) {
    const std::vector<std::int32_t> ids = {0, 4, bad};
    try {
      require_ids(ids, 5, "the prompt");
      FAIL() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::Data);
      EXPECT_EQ(
          std::string(error.what())
              .rfind(text("the prompt: token 2 is ", bad, ", but the model has ids from 0 to 4"),
                     0),
          0U)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace tessera
