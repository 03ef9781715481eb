#include "tessera/token_files/noised_texts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/tensor/ignored_label.h"
#include "tessera/tokenizers/vocabulary.h"

namespace tessera {
namespace {

constexpr std::int32_t kTokens = 1000;  // each of them once, so that a token tells its place
constexpr std::int32_t kMark = kTokens, kEnd = 1200;

NoisedTokens counted_tokens(std::int32_t n) {
  NoisedTokens out(static_cast<std::size_t>(n));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

NoisedTokens hundred_marks() {
  NoisedTokens out(100);
  std::iota(out.begin(), out.end(), kMark);
  return out;
}

bool is_mark(std::int32_t token) { return token >= kMark && token < kMark + 100; }

/// The spans behind the marks of a target, and in the source the text around them: the text again.
NoisedTokens put_back(const NoisedText& noised) {
  NoisedTokens out;
  auto span = noised.target.begin();
  for (const std::int32_t token : noised.source) {
    if (!is_mark(token)) {
      out.push_back(token);
      continue;
    }
    EXPECT_EQ(*span, token);
    for (++span; span != noised.target.end() && !is_mark(*span); ++span) out.push_back(*span);
  }
  EXPECT_EQ(span, noised.target.end());
  return out;
}

TEST(NoisedText, SpansBehindTheirMarksAreTheTextAgain) {
  for (const std::int32_t length : {2, 3, 7, 20, 64, 568}) {
    const NoisedTokens tokens = counted_tokens(length);
    // Of T5's paper: 15 % of the tokens, in spans of three on average.
    const auto taken = std::clamp<std::int64_t>(std::lrint(0.15 * length), 1, length - 1);
    const auto spans = std::max<std::int64_t>(1, std::lrint(static_cast<double>(taken) / 3));
    std::set<NoisedTokens> different;
    for (int sample = 0; sample < 50; ++sample) {
      const NoisedText noised =
          noised_text(tokens, kSpanCorruption, hundred_marks(), {}, 7, sample);
      EXPECT_EQ(put_back(noised), tokens);
      EXPECT_EQ(std::ssize(noised.target), taken + spans);
      EXPECT_EQ(std::ssize(noised.source), length - taken + spans);
      different.insert(noised.source);
    }
    EXPECT_GT(different.size(), length < 64 ? 0u : 40u) << length;
  }
}

// As the function of T5's authors says it, for what a model of 512 tokens reads.
TEST(NoisedText, TextsAreAsLongAsTheSourceHolds) {
  const NoisedLengths published = noised_lengths(kSpanCorruption, 512 - 1, 1000);
  EXPECT_EQ(published.text, 568);
  EXPECT_EQ(published.target + 1, 114);
  EXPECT_EQ(published.spans, 28);
  EXPECT_EQ(noised_lengths(kSpanCorruption, 1, 1000).text, 0);
  EXPECT_EQ(noised_lengths(kSpanCorruption, 2, 1000).text, 2);
  EXPECT_EQ(noised_lengths(kTextInfilling, 30, 20).text, 20);
}

/// Every part of the tokens is as likely to be taken out as any other.
TEST(NoisedText, SpansAreAnywhere) {
  constexpr int kLength = 200, kSamples = 2000;
  for (const TextNoise& noise : {kSpanCorruption, kTextInfilling}) {
    std::vector<double> taken(kLength, 0);
    for (int sample = 0; sample < kSamples; ++sample) {
      const NoisedText noised =
          noised_text(counted_tokens(kLength), noise, hundred_marks(), {}, 3, sample);
      std::set<std::int32_t> left(noised.source.begin(), noised.source.end());
      for (std::int32_t i = 0; i < kLength; ++i)
        taken[static_cast<std::size_t>(i)] += !left.contains(i);
    }
    // Spans lie inside: the tokens at both ends are in fewer.
    for (std::size_t i = 0; i < kLength; ++i) {
      const bool ends = noise.kind == TextNoise::Kind::Spans;  // with a span, and begins without
      const bool inside = i >= 6 && i < kLength - (ends ? 20 : 6);
      if (ends && !inside) continue;
      EXPECT_NEAR(taken[i] / kSamples, noise.share * (inside ? 1 : 0.7),
                  noise.share * (inside ? 0.25 : 0.6))
          << i;
    }
  }
}

TEST(NoisedText, InfillingLeavesTheTextButForSpansWithOneMarkEach) {
  constexpr int kLength = 60;
  const NoisedTokens tokens = counted_tokens(kLength);
  double marks = 0, inserted = 0;
  for (int sample = 0; sample < 500; ++sample) {
    TextNoise noise = kTextInfilling;
    noise.shuffles_sentences = false;
    const NoisedText noised = noised_text(tokens, noise, hundred_marks(), {}, 1, sample);
    EXPECT_EQ(noised.target, tokens);
    EXPECT_LE(noised.source.size(), tokens.size());
    NoisedTokens kept;
    std::int32_t last = -1;
    bool behind_mark = false;
    for (const std::int32_t token : noised.source) {
      if (token == kMark) {
        ++marks;
        behind_mark = true;
        continue;
      }
      inserted += behind_mark && token == last + 1;
      EXPECT_TRUE(behind_mark || token == last + 1);
      behind_mark = false;
      last = token;
      kept.push_back(token);
    }
    EXPECT_TRUE(std::ranges::is_sorted(kept));
    EXPECT_EQ(kLength - std::ssize(kept), 18);  // 30 %
  }
  // 18 tokens in spans of about three, and a twentieth (e^-3) of the spans without a token. The
  // last span is cut, so there are some more.
  EXPECT_NEAR(marks / 500, 18 / 3.0 + 0.7, 0.5);
  EXPECT_GT(inserted / marks, 0.02);
  EXPECT_LT(inserted / marks, 0.09);
}

TEST(NoisedText, InfillingShufflesSentences) {
  // 0 1 2. 3 4. 5 6 7 8. 9
  std::vector<bool> ends(10, false);
  for (const std::size_t end : {2u, 4u, 8u}) ends[end] = true;
  const NoisedTokens tokens = counted_tokens(10);
  TextNoise noise = kTextInfilling;
  noise.share = 1e-9;  // one token
  std::set<NoisedTokens> orders;
  for (int sample = 0; sample < 400; ++sample) {
    const NoisedText noised = noised_text(tokens, noise, hundred_marks(), ends, 5, sample);
    EXPECT_EQ(noised.target, tokens);
    NoisedTokens firsts;
    for (const std::int32_t token : noised.source) {
      if (token == 1 || token == 3 || token == 6 || token == 9) firsts.push_back(token);
    }
    if (firsts.size() == 4) orders.insert(firsts);
  }
  EXPECT_EQ(orders.size(), 24u);  // all orders of four sentences
}

TEST(SentenceEnds, AreMarksAndNewLines) {
  const Vocabulary vocabulary = Vocabulary::characters("ab .,!?\n");
  std::string ends;
  const std::vector<bool> of = sentence_ends(vocabulary);
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    if (of[static_cast<std::size_t>(id)]) ends += vocabulary.decode(std::span(&id, 1));
  }
  std::ranges::sort(ends);
  EXPECT_EQ(ends, "\n!.?");
}

NoisedTextsOptions noise_options(const TextNoise& noise, std::int64_t source,
                                 std::int64_t written) {
  NoisedTextsOptions out{.noise = noise, .source = source, .written = written};
  out.pad = 1100, out.start = 1101, out.end = kEnd;
  out.marks = hundred_marks();
  out.seed = 11;
  return out;
}

/// A batch with memory of its own.
struct NoisedBatch {
  std::map<std::string, NoisedTokens> of;

  NoisedBatch(const Samples& samples, const NoisedTextsOptions& options, std::int64_t first,
              std::int64_t count) {
    BatchInputs batch("train");
    for (const char* name : {"source", "ids", "labels"}) {
      const std::int64_t length = *name == 's' ? options.source : options.written;
      NoisedTokens& numbers = of[name];
      numbers.assign(static_cast<std::size_t>(count * length), -7);
      const Shape shape{count, length};
      batch.add(name, {DType::I32, shape, {}}, std::as_writable_bytes(std::span(numbers)).data());
    }
    samples.fill(first, count, batch);
    batch.require_filled();
  }
  NoisedTokens row(const std::string& name, std::int64_t i, std::int64_t length) const {
    const auto begin = of.at(name).begin() + i * length;
    return {begin, begin + length};
  }
};

TEST(NoisedTexts, AreInputsOfTranslations) {
  const NoisedTokens tokens = counted_tokens(kTokens);
  for (const TextNoise& noise : {kSpanCorruption, kTextInfilling}) {
    NoisedTextsOptions options = noise_options(noise, 40, 44);
    if (noise.kind == TextNoise::Kind::Infilling) options.first = 1102;
    const auto samples = noised_texts(tokens, DataPart::Train, options);
    const NoisedBatch batch(*samples, options, 5, 30);
    for (std::int64_t i = 0; i < 30; ++i) {
      const NoisedTokens ids = batch.row("ids", i, 44), labels = batch.row("labels", i, 44),
                         source = batch.row("source", i, 40);
      EXPECT_EQ(ids[0], options.start);
      const auto end = std::ranges::find(labels, kEnd);
      ASSERT_NE(end, labels.end());
      EXPECT_TRUE(std::all_of(end + 1, labels.end(), [](auto l) { return l == kIgnoredLabel; }));
      EXPECT_TRUE(std::equal(labels.begin(), end, ids.begin() + 1));
      EXPECT_EQ(std::count(source.begin(), source.end(), kEnd), 1);
      if (options.first) {
        EXPECT_EQ(source[0], 1102);
        EXPECT_EQ(labels[0], 1102);
      }
    }
  }
}

TEST(NoisedTexts, HeldOutTokensAreThereOnce) {
  const NoisedTokens tokens = counted_tokens(103);
  for (const TextNoise& noise : {kSpanCorruption, kTextInfilling}) {
    const NoisedTextsOptions options = noise_options(noise, 20, 20);
    const auto samples = noised_texts(tokens, DataPart::Valid, options);
    const std::int64_t count = samples->size();
    const NoisedBatch batch(*samples, options, 0, count + 2);
    NoisedTokens seen;
    for (std::int64_t i = 0; i < count + 2; ++i) {
      NoisedText noised{batch.row("source", i, 20), batch.row("labels", i, 20)};
      const auto end = std::ranges::find(noised.target, kEnd);
      EXPECT_EQ(end == noised.target.end(), i >= count) << "behind the end is padding alone";
      if (i >= count) continue;
      noised.target.erase(end, noised.target.end());
      noised.source.erase(std::ranges::find(noised.source, kEnd), noised.source.end());
      const bool spans = noise.kind == TextNoise::Kind::Spans;
      const NoisedTokens text = spans ? put_back(noised) : noised.target;
      seen.insert(seen.end(), text.begin(), text.end());
    }
    EXPECT_EQ(seen, tokens);
  }
}

void expect_refused(Fault fault, const std::string& message, const std::function<void()>& of) {
  try {
    of();
    ADD_FAILURE() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), fault);
    EXPECT_EQ(std::string(error.what()).substr(0, message.size()), message);
  }
}

TEST(NoisedTexts, RefuseWhatHasNoRoom) {
  const NoisedTokens tokens = counted_tokens(kTokens);
  const auto make = [&](NoisedTextsOptions options) {
    return [=, &tokens] { noised_texts(tokens, DataPart::Train, options); };
  };
  expect_refused(Fault::Usage, "source-context is 2, which has no room for a text",
                 make(noise_options(kSpanCorruption, 2, 20)));
  expect_refused(Fault::Usage, "context or source-context is 1, which has no room",
                 make(noise_options(kTextInfilling, 30, 1)));
  expect_refused(Fault::Usage,
                 "a sample of source-context 512 is a text of 568 tokens, of which 114 are "
                 "written, but context is 113; give context at least 114",
                 make(noise_options(kSpanCorruption, 512, 113)));
  NoisedTextsOptions few = noise_options(kSpanCorruption, 512, 114);
  few.marks.resize(20);
  expect_refused(Fault::Usage, "a sample of source-context 512 has 28 spans, and there are 20",
                 make(few));
  expect_refused(Fault::Data, "source-context 950 is longer than the data: a sample takes ",
                 make(noise_options(kSpanCorruption, 950, 300)));
}

TEST(NoisedTexts, TellPaddingThatContextMakes) {
  const NoisedTokens tokens = counted_tokens(kTokens);
  EXPECT_EQ(noised_texts(tokens, DataPart::Train, noise_options(kSpanCorruption, 64, 64))->notice(),
            "samples are texts of 70 tokens, and write 14 of context 64; context 14 computes no "
            "padding");
  EXPECT_EQ(noised_texts(tokens, DataPart::Train, noise_options(kTextInfilling, 64, 64))->notice(),
            "");
}

}  // namespace
}  // namespace tessera
