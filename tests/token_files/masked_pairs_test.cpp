#include "tessera/token_files/masked_pairs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "files/test_data.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/tensor/ignored_label.h"

namespace tessera {
namespace {

using Numbers = std::vector<std::int32_t>;

constexpr std::int64_t kText = 1000;  // tokens, each of them once, so that a token tells its place
constexpr std::int32_t kPad = kText, kCls = kText + 1, kSep = kText + 2, kMask = kText + 3;

Numbers every_token(std::int64_t n = kText) {
  Numbers out(static_cast<std::size_t>(n));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

MaskedPairsOptions pair_options(std::int64_t context, std::int64_t masked_positions = 0,
                                SampleParts parts = SampleParts::Elsewhere) {
  return {context, kText, masked_positions, 7, SampleOrder::ShuffledWindows, {}, parts};
}

void expect_fault(Fault fault, const std::string& message, const std::function<void()>& of) {
  try {
    of();
    ADD_FAILURE() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), fault);
    EXPECT_TRUE(starts_with(error.what(), message)) << error.what();
  }
}

/// A batch with memory of its own.
struct PairBatch {
  std::int64_t context, predicted;
  std::map<std::string, Numbers> of;

  PairBatch(const Samples& samples, const MaskedPairsOptions& options, std::int64_t first,
            std::int64_t count)
      : context(options.context),
        predicted(options.masked_positions > 0 ? options.masked_positions : options.context) {
    BatchInputs batch("train");
    const auto add = [&](const std::string& name, const Shape& shape) {
      Numbers& numbers = of[name];
      numbers.assign(static_cast<std::size_t>(shape.numel()), -1);
      batch.add(name, {DType::I32, shape, {}}, std::as_writable_bytes(std::span(numbers)).data());
    };
    for (const char* name : {"ids", "mask"}) add(name, {count, context});
    add("labels", {count, predicted});
    if (options.parts != SampleParts::One) {
      add("types", {count, context});
      add("next", {count});
    }
    if (options.masked_positions > 0) add("masked_positions", {count, predicted});
    samples.fill(first, count, batch);
    batch.require_filled();
  }

  Numbers row(const std::string& name, std::int64_t i) const {
    const Numbers& all = of.at(name);
    const std::int64_t size = name == "labels" || name == "masked_positions" ? predicted : context;
    return {all.begin() + i * size, all.begin() + (i + 1) * size};
  }
};

/// A sample as it was before masking, told apart.
struct Restored {
  Numbers a, b;
  std::int32_t next = kIgnoredLabel;
  int masked = 0, as_mask = 0, kept = 0, other = 0;
};

/// Checks the layout of row `i` on the way.
Restored restored(const PairBatch& batch, std::int64_t i) {
  Numbers ids = batch.row("ids", i);
  const bool two = batch.of.contains("types");
  const Numbers types = two ? batch.row("types", i) : Numbers(ids.size()),
                mask = batch.row("mask", i), labels = batch.row("labels", i);
  Restored out;
  if (two) out.next = batch.of.at("next")[static_cast<std::size_t>(i)];
  for (std::size_t n = 0; n < labels.size(); ++n) {
    if (labels[n] == kIgnoredLabel) continue;
    const std::size_t at = batch.of.contains("masked_positions")
                               ? static_cast<std::size_t>(batch.row("masked_positions", i)[n])
                               : n;
    ++out.masked;
    ++(ids[at] == kMask ? out.as_mask : ids[at] == labels[n] ? out.kept : out.other);
    EXPECT_TRUE(ids[at] == kMask || ids[at] < kText);
    ids[at] = labels[n];
  }
  EXPECT_EQ(ids[0], kCls);
  std::size_t at = 1;
  for (; ids[at] != kSep; ++at) out.a.push_back(ids[at]);
  const std::size_t num_first = ++at;
  for (; two && ids[at] != kSep; ++at) out.b.push_back(ids[at]);
  const std::size_t used = two ? ++at : at;
  for (at = 0; at < ids.size(); ++at) {
    EXPECT_EQ(types[at], at >= num_first && at < used ? 1 : 0) << at;
    EXPECT_EQ(mask[at], at < used ? 1 : 0) << at;
    EXPECT_EQ(ids[at] == kPad, at >= used) << at;
  }
  for (const Numbers& part : {out.a, out.b}) {
    for (std::size_t n = 0; n < part.size(); ++n) EXPECT_EQ(part[n], part[0] + static_cast<int>(n));
  }
  return out;
}

// A run of n words is one of 1 to 3 with a probability of (1 / n) / (1 + 1/2 + 1/3), and has whole
// words of one part. Words here begin at each third token.
TEST(MaskedPairs, MaskRunsOfWords) {
  const Numbers text = every_token();
  MaskedPairsOptions options = pair_options(403, 0, SampleParts::Swapped);
  options.longest_run = 3;
  for (std::int32_t i = 0; i < kText; ++i) options.begins_word.push_back(i % 3 == 0);
  const std::unique_ptr<Samples> samples = masked_pairs(text, options);
  constexpr int kSamples = 500;
  const PairBatch batch(*samples, options, 0, kSamples);
  std::map<std::size_t, double> runs;
  double masked = 0, wanted = 0;
  for (int i = 0; i < kSamples; ++i) {
    const Restored sample = restored(batch, i);
    const std::size_t length = sample.a.size() + sample.b.size();
    const int most = std::max(1, static_cast<int>(0.15 * double(length) + 0.5));
    EXPECT_LE(sample.masked, most);
    EXPECT_GE(sample.masked, 1);
    masked += sample.masked, wanted += most;
    if (length < 400) continue;
    const Numbers labels = batch.row("labels", i), ids = batch.row("ids", i);
    for (std::size_t at = 0; at < labels.size(); ++at) {
      if (labels[at] == kIgnoredLabel) continue;
      const std::size_t first = at;
      while (at < labels.size() && labels[at] != kIgnoredLabel) ++at;
      // A word ends where the next begins, or a part.
      const bool begins =
          labels[first] % 3 == 0 || ids[first - 1] == kCls || ids[first - 1] == kSep;
      EXPECT_TRUE(begins && (labels[at - 1] % 3 == 2 || ids[at] == kSep)) << i << ": " << first;
      ++runs[(at - first + 2) / 3];
    }
  }
  EXPECT_GT(masked / wanted, 0.95);
  // Two runs may touch, and the last may be cut.
  const double all = runs[1] + runs[2] + runs[3];
  EXPECT_NEAR(runs[1] / all, 6 / 11.0, 0.08);
  EXPECT_NEAR(runs[2] / all, 3 / 11.0, 0.06);
  EXPECT_NEAR(runs[3] / all, 2 / 11.0, 0.06);
}

TEST(MaskedPairs, MaskTokensWhereWordsAreLongerThanTheShare) {
  const Numbers text = every_token();
  MaskedPairsOptions options = pair_options(22, 0, SampleParts::One);
  options.longest_run = 3;
  options.begins_word.assign(kText, false);
  const PairBatch batch(*masked_pairs(text, options), options, 0, 50);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(restored(batch, i).masked, 3);
}

TEST(WordBegins, AreBlanksOfLearnedTokensAndOfCharacters) {
  const Vocabulary characters = Vocabulary::characters("a b\n");
  std::string begins;
  const std::vector<bool> of = word_begins(characters);
  for (std::int32_t id = 0; id < characters.size(); ++id) {
    if (of[static_cast<std::size_t>(id)]) begins += characters.decode(std::span(&id, 1));
  }
  EXPECT_EQ(begins, "\n ");
  for (const bool begin : word_begins(Vocabulary::ids(5))) EXPECT_TRUE(begin);
}

TEST(MaskedPairs, AreTwoPartsOfTheTextOfWhichTheSecondOftenFollows) {
  const Numbers text = every_token();
  const MaskedPairsOptions options = pair_options(23);
  const std::unique_ptr<Samples> samples = masked_pairs(text, options);
  EXPECT_EQ(samples->size(),
            49);  // windows of 20 tokens, the last token of the text not among them
  constexpr int kSamples = 4000;
  const PairBatch batch(*samples, options, 0, kSamples);
  double follow = 0, shorter = 0, tokens = 0, masked = 0, as_mask = 0, kept = 0;
  for (int i = 0; i < kSamples; ++i) {
    const Restored sample = restored(batch, i);
    ASSERT_FALSE(sample.a.empty() || sample.b.empty());
    ASSERT_EQ(sample.next, sample.b[0] == sample.a.back() + 1 ? 0 : 1);
    const std::size_t length = sample.a.size() + sample.b.size();
    ASSERT_LE(length, 20u);
    // Rounded to the nearest, and at least one.
    ASSERT_EQ(sample.masked, std::max<int>(1, static_cast<int>(0.15 * double(length) + 0.5)));
    follow += sample.next == 0, shorter += length < 20;
    masked += sample.masked, as_mask += sample.as_mask, kept += sample.kept;
    tokens += static_cast<double>(length);
  }
  // Within five standard deviations of 4,000 samples and some 12,000 masked tokens.
  EXPECT_NEAR(follow / kSamples, 0.5, 0.04);
  EXPECT_NEAR(shorter / kSamples, 0.1 * 18 / 19, 0.025);
  EXPECT_NEAR(masked / tokens, 0.15, 0.01);
  EXPECT_NEAR(as_mask / masked, 0.8, 0.02);
  EXPECT_NEAR(kept / masked, 0.1, 0.015);  // random tokens are others, but for one in 1,000
}

TEST(MaskedPairs, ArePureFunctionsOfSeedAndNumber) {
  const Numbers text = every_token();
  for (const std::int64_t k : {0, 3}) {
    MaskedPairsOptions options = pair_options(16, k);
    const PairBatch all(*masked_pairs(text, options), options, 90, 20),
        part(*masked_pairs(text, options), options, 97, 5);
    for (const auto& [name, numbers] : part.of) {
      if (name == "next") continue;
      for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(part.row(name, i), all.row(name, i + 7));
    }
    options.seed = 8;
    EXPECT_NE(PairBatch(*masked_pairs(text, options), options, 90, 20).of, all.of);
  }
}

/// A run that goes on with another version of the program sees the same samples.
TEST(MaskedPairs, AreForEver) {
  const Numbers text = every_token();
  const MaskedPairsOptions options = pair_options(12, 3);
  const PairBatch batch(*masked_pairs(text, options), options, 21, 3);
  EXPECT_EQ(batch.of.at("ids"),
            (Numbers{1001, 792, 793,  794, 795, 796,  797, 798,  799, 1002, 1003, 1002,
                     1001, 855, 1002, 880, 881, 1003, 883, 884,  885, 886,  887,  1002,
                     1001, 747, 748,  749, 750, 381,  752, 1002, 753, 754,  755,  1002}));
  EXPECT_EQ(batch.of.at("masked_positions"), (Numbers{10, 0, 0, 5, 0, 0, 5, 0, 0}));
  EXPECT_EQ(batch.of.at("labels"), (Numbers{800, -100, -100, 882, -100, -100, 751, -100, -100}));
  EXPECT_EQ(batch.of.at("next"), (Numbers{0, 1, 0}));
}

TEST(MaskedPairs, MaskedPositionsAreThoseWithLabels) {
  const Numbers text = every_token();
  const MaskedPairsOptions all = pair_options(43), listed = pair_options(43, 9),
                           few = pair_options(43, 2);
  const PairBatch a(*masked_pairs(text, all), all, 0, 50),
      b(*masked_pairs(text, listed), listed, 0, 50), c(*masked_pairs(text, few), few, 0, 50);
  EXPECT_EQ(a.of.at("ids"), b.of.at("ids"));
  for (std::int64_t i = 0; i < 50; ++i) {
    const Numbers labels = a.row("labels", i), places = b.row("masked_positions", i);
    Numbers expected_places, expected_labels;
    for (std::size_t n = 0; n < labels.size(); ++n) {
      if (labels[n] == kIgnoredLabel) continue;
      expected_places.push_back(static_cast<std::int32_t>(n));
      expected_labels.push_back(labels[n]);
    }
    expected_places.resize(9, 0);
    expected_labels.resize(9, kIgnoredLabel);
    EXPECT_EQ(places, expected_places);
    EXPECT_EQ(b.row("labels", i), expected_labels);
    EXPECT_EQ(restored(c, i).masked, std::min(restored(b, i).masked, 2));
  }
}

TEST(FixedMaskedPairs, HaveEveryTokenOnce) {
  for (const std::int64_t n : {1, 2, 6, 7, 8, 13, 14, 15, 28, 29, 200, 203}) {
    const Numbers text = every_token(n);
    const MaskedPairsOptions options = pair_options(10);
    const std::unique_ptr<Samples> samples = fixed_masked_pairs(text, options, 0);
    const std::int64_t size = samples->size();
    ASSERT_EQ(size, (n + 6) / 7) << n;
    const PairBatch batch(*samples, options, 0, size + 2);
    Numbers seen(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < size; ++i) {
      const Restored sample = restored(batch, i);
      for (const Numbers& part : {sample.a, sample.b}) {
        for (const std::int32_t token : part) ++seen[static_cast<std::size_t>(token)];
      }
      ASSERT_GT(sample.masked, 0);
      if (sample.b.empty()) {
        EXPECT_EQ(sample.next, kIgnoredLabel) << "a sample of one token";
      } else {
        EXPECT_EQ(sample.next, sample.b[0] == sample.a.back() + 1 ? 0 : 1) << n << " " << i;
      }
    }
    EXPECT_EQ(seen, Numbers(static_cast<std::size_t>(n), 1)) << n;
    for (std::int64_t i = size; i < size + 2; ++i) {  // nothing counts
      EXPECT_EQ(batch.row("ids", i), Numbers(10, kPad));
      EXPECT_EQ(batch.row("mask", i), Numbers(10, 0));
      EXPECT_EQ(batch.row("labels", i), Numbers(10, kIgnoredLabel));
      EXPECT_EQ(batch.of.at("next")[static_cast<std::size_t>(i)], kIgnoredLabel);
    }
  }
}

TEST(FixedMaskedPairs, AreHalfExchangedWhateverTheSeed) {
  const Numbers text = every_token();
  MaskedPairsOptions options = pair_options(8);
  const std::unique_ptr<Samples> samples = fixed_masked_pairs(text, options, 0);
  const PairBatch batch(*samples, options, 0, 200);
  const Numbers& next = batch.of.at("next");
  EXPECT_NEAR(std::accumulate(next.begin(), next.end(), 0), 100,
              40);  // pairs: 5 x sqrt(100) / 2 x 2
  options.seed = 99;
  options.order = SampleOrder::RandomOffsets;
  EXPECT_EQ(PairBatch(*fixed_masked_pairs(text, options, 0), options, 0, 200).of, batch.of);
  EXPECT_EQ(fixed_masked_pairs(text, options, 30)->size(), 30);
  EXPECT_EQ(fixed_masked_pairs(text, options, 3000)->size(), 200);
}

/// The two parts follow each other, in their order or the other way round.
TEST(MaskedPairs, MayBeSwapped) {
  const Numbers text = every_token();
  const MaskedPairsOptions options = pair_options(23, 0, SampleParts::Swapped);
  for (const bool fixed : {false, true}) {
    const std::unique_ptr<Samples> samples =
        fixed ? fixed_masked_pairs(text, options, 0) : masked_pairs(text, options);
    const int count = fixed ? static_cast<int>(samples->size()) : 1000;
    const PairBatch batch(*samples, options, 0, count);
    Numbers seen(text.size());
    int swapped = 0;
    for (int i = 0; i < count; ++i) {
      const Restored sample = restored(batch, i);
      ASSERT_FALSE(sample.a.empty() || sample.b.empty());
      const bool in_order = sample.b[0] == sample.a.back() + 1;
      ASSERT_NE(in_order, sample.a[0] == sample.b.back() + 1);
      ASSERT_EQ(sample.next, in_order ? 0 : 1);
      swapped += sample.next;
      for (const Numbers& part : {sample.a, sample.b}) {
        for (const std::int32_t token : part) ++seen[static_cast<std::size_t>(token)];
      }
    }
    EXPECT_NEAR(swapped, count / 2.0, 2.5 * std::sqrt(count));  // five standard deviations
    if (fixed) {
      EXPECT_EQ(seen, Numbers(text.size(), 1));
    }
  }
}

/// Whole samples, in which later epochs mask other tokens.
TEST(MaskedPairs, MayBeOfOnePart) {
  const Numbers text = every_token();
  const MaskedPairsOptions options = pair_options(22, 0, SampleParts::One);
  const std::unique_ptr<Samples> samples = masked_pairs(text, options);
  ASSERT_EQ(samples->size(), 49);  // windows of 20 tokens
  const PairBatch first(*samples, options, 0, 49), second(*samples, options, 49, 49);
  for (int i = 0; i < 49; ++i) {
    const Restored sample = restored(first, i);
    EXPECT_EQ(sample.a.size(), 20u);
    EXPECT_EQ(sample.masked, 3);
  }
  EXPECT_NE(first.of.at("labels"), second.of.at("labels"));

  for (const std::int64_t n : {1, 19, 20, 21, 203}) {
    const Numbers held_out = every_token(n);
    const std::unique_ptr<Samples> fixed = fixed_masked_pairs(held_out, options, 0);
    const PairBatch all(*fixed, options, 0, fixed->size() + 1);
    Numbers seen;
    for (std::int64_t i = 0; i < fixed->size(); ++i) {
      const Restored sample = restored(all, i);
      ASSERT_GT(sample.masked, 0);
      seen.insert(seen.end(), sample.a.begin(), sample.a.end());
    }
    EXPECT_EQ(seen, held_out);
    EXPECT_EQ(all.row("labels", fixed->size()), Numbers(22, kIgnoredLabel));
  }
}

TEST(MaskedPairs, MayHaveNothingButMasksInPlaceOfTokens) {
  const Numbers text = every_token();
  MaskedPairsOptions options = pair_options(22, 0, SampleParts::One);
  const PairBatch usual(*masked_pairs(text, options), options, 0, 49);
  options.masks_alone = true;
  const PairBatch alone(*masked_pairs(text, options), options, 0, 49);
  EXPECT_EQ(alone.of.at("labels"), usual.of.at("labels"));
  int others = 0;
  for (int i = 0; i < 49; ++i) {
    const Restored sample = restored(alone, i), before = restored(usual, i);
    EXPECT_EQ(sample.as_mask, 3);
    others += before.kept + before.other;
  }
  EXPECT_GT(others, 0);
}

TEST(MaskedPairs, TooLittleTextIsRefused) {
  expect_fault(Fault::Data, "context 12 is longer than the data: a sample takes 10 tokens",
               [] { masked_pairs(every_token(9), pair_options(12)); });
  EXPECT_EQ(masked_pairs(every_token(10), pair_options(12))->size(), 1);
  expect_fault(Fault::Data, "context 12 is longer than the data: a sample takes 11 tokens (2 of",
               [] { masked_pairs(every_token(10), pair_options(12, 0, SampleParts::One)); });
  expect_fault(Fault::Data, "the held-out part has no token",
               [] { fixed_masked_pairs({}, pair_options(12), 0); });
}

}  // namespace
}  // namespace tessera
