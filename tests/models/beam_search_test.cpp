#include "tessera/models/beam_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "tessera/base/text.h"

namespace tessera {
namespace {

using Tokens = std::vector<std::int32_t>;

/// A model whose logits are any function of the text, and beams that follow what they are told.
class KnownTexts {
 public:
  KnownTexts(std::int64_t beams, std::int64_t vocabulary, std::uint64_t seed)
      : rows_(static_cast<std::size_t>(beams)), vocabulary_(vocabulary), seed_(seed) {}

  std::vector<double> logits(const Tokens& text) const {
    std::uint64_t key = seed_;
    for (const std::int32_t token : text)
      key = key * 1'000'003 + static_cast<std::uint64_t>(token) + 1;
    std::mt19937_64 random(key);
    std::normal_distribution<double> normal(0, 2);
    std::vector<double> out;
    for (std::int64_t i = 0; i < vocabulary_ + 2; ++i) out.push_back(normal(random));
    for (std::size_t i = 0; i < 2; ++i) out[out.size() - 1 - i] = 50;  // beyond the vocabulary
    return out;
  }

  double log_probability(const Tokens& text) const {
    double out = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const std::vector<double> row = logits({text.begin(), text.begin() + static_cast<long>(i)});
      double sum = 0;
      for (std::int64_t v = 0; v < vocabulary_; ++v)
        sum += std::exp(row[static_cast<std::size_t>(v)]);
      out += row[static_cast<std::size_t>(text[i])] - std::log(sum);
    }
    return out;
  }

  std::vector<std::vector<double>> operator()(std::span<const std::int32_t> parents,
                                              std::span<const std::int32_t> tokens) {
    std::vector<Tokens> grown(rows_.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      grown[i] = rows_[static_cast<std::size_t>(parents[i])];
      grown[i].push_back(tokens[i]);
    }
    rows_ = grown;
    std::vector<std::vector<double>> out;
    for (const Tokens& row : rows_) out.push_back(logits(row));
    return out;
  }

 private:
  std::vector<Tokens> rows_;
  std::int64_t vocabulary_;
  std::uint64_t seed_;
};

/// The text that a search finds, by rows that follow it.
BeamResult beam_search(const BeamOptions& options, std::int64_t vocabulary, KnownTexts& texts) {
  BeamSearch search(options, vocabulary);
  std::vector<std::vector<double>> logits = texts({}, {});
  while (true) {
    search.advance(logits);
    if (search.done()) return search.result();
    logits = texts(search.parents(), search.tokens());
  }
}

double score(double log_probability, std::size_t length, double penalty) {
  return log_probability / std::pow((5.0 + static_cast<double>(length)) / 6.0, penalty);
}

/// The best of all texts of `tokens` tokens, or shorter ones that end.
BeamResult best_of_all(const KnownTexts& texts, const BeamOptions& options,
                       std::int64_t vocabulary) {
  BeamResult best{{}, -1e300};
  const std::function<void(Tokens&)> visit = [&](Tokens& text) {
    const bool ended = options.end && !text.empty() && text.back() == *options.end;
    if (ended || std::ssize(text) == options.tokens) {
      const double found = score(texts.log_probability(text), text.size(), options.length_penalty);
      if (found > best.score) best = {text, found};
      return;
    }
    for (std::int32_t v = 0; v < vocabulary; ++v) {
      text.push_back(v);
      visit(text);
      text.pop_back();
    }
  };
  Tokens text;
  visit(text);
  return best;
}

/// Beam search in few words: whole texts, sorted, and none is given up early.
BeamResult plain_search(const KnownTexts& texts, const BeamOptions& options,
                        std::int64_t vocabulary) {
  std::vector<Tokens> kept = {{}};
  BeamResult best{{}, -1e300};
  const auto finish = [&](const Tokens& text) {
    const double found = score(texts.log_probability(text), text.size(), options.length_penalty);
    if (found > best.score) best = {text, found};
  };
  for (std::int64_t i = 0; i < options.tokens; ++i) {
    std::vector<Tokens> all;
    for (const Tokens& text : kept) {
      for (std::int32_t v = 0; v < vocabulary; ++v) {
        all.push_back(text);
        all.back().push_back(v);
      }
    }
    std::ranges::stable_sort(all, [&](const Tokens& a, const Tokens& b) {
      return texts.log_probability(a) > texts.log_probability(b);
    });
    kept.clear();
    for (const Tokens& text : all) {
      if (std::ssize(kept) == options.beams) break;
      if (options.end && text.back() == *options.end) {
        finish(text);
      } else {
        kept.push_back(text);
      }
    }
  }
  for (const Tokens& text : kept) finish(text);
  return best;
}

/// Narrow beams, which lose texts: the same are lost. In some cases it is not the greedy text.
TEST(BeamSearch, IsThePlainSearch) {
  constexpr std::int64_t kVocabulary = 5;
  int not_greedy = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    for (const double penalty : {0.0, 1.0, -0.5}) {
      for (const std::int64_t beams : {2, 3}) {
        for (const bool ends : {false, true}) {
          SCOPED_TRACE(text(seed, " ", penalty, " ", beams, " ", ends));
          BeamOptions options{.beams = beams, .tokens = 5, .length_penalty = penalty};
          if (ends) options.end = 1;
          KnownTexts texts(beams, kVocabulary, seed);
          const BeamResult found = beam_search(options, kVocabulary, texts);
          const BeamResult plain = plain_search(texts, options, kVocabulary);
          EXPECT_EQ(found.tokens, plain.tokens);
          EXPECT_NEAR(found.score, plain.score, 1e-9);
          options.beams = 1;
          KnownTexts one(1, kVocabulary, seed);
          if (beam_search(options, kVocabulary, one).tokens != found.tokens) ++not_greedy;
        }
      }
    }
  }
  EXPECT_GT(not_greedy, 20) << "of 360";
}

/// With as many beams as there are texts nothing is lost.
TEST(BeamSearch, WideEnoughFindsTheBest) {
  constexpr std::int64_t kVocabulary = 3;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    for (const double penalty : {0.0, 1.0, -0.5, 3.0}) {
      for (const bool ends : {false, true}) {
        BeamOptions options{.beams = 81, .tokens = 4, .length_penalty = penalty};
        if (ends) options.end = 1;
        KnownTexts texts(options.beams, kVocabulary, seed);
        const BeamResult best = best_of_all(texts, options, kVocabulary);
        const BeamResult found = beam_search(options, kVocabulary, texts);
        EXPECT_EQ(found.tokens, best.tokens) << seed << " " << penalty << " " << ends;
        EXPECT_NEAR(found.score, best.score, 1e-9);
      }
    }
  }
}

/// Narrow beams find a text with the score that they say, no better than the best, and no worse
/// than greedy choice where nothing ends.
TEST(BeamSearch, NarrowIsHonest) {
  constexpr std::int64_t kVocabulary = 5;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    double before = -1e300;
    for (const std::int64_t beams : {1, 2, 4}) {
      const BeamOptions options{.beams = beams, .tokens = 5};
      KnownTexts texts(beams, kVocabulary, seed);
      const BeamResult found = beam_search(options, kVocabulary, texts);
      EXPECT_EQ(found.tokens.size(), 5u);
      EXPECT_NEAR(found.score, texts.log_probability(found.tokens), 1e-9);
      EXPECT_LE(found.score, best_of_all(texts, options, kVocabulary).score + 1e-9);
      if (beams == 1) before = found.score;
    }
    EXPECT_GT(before, -1e300);
  }
}

TEST(BeamSearch, OneBeamIsGreedy) {
  KnownTexts texts(1, 6, 7);
  const BeamResult found = beam_search({.beams = 1, .tokens = 6}, 6, texts);
  Tokens greedy;
  for (int i = 0; i < 6; ++i) {
    const std::vector<double> row = texts.logits(greedy);
    greedy.push_back(
        static_cast<std::int32_t>(std::max_element(row.begin(), row.begin() + 6) - row.begin()));
  }
  EXPECT_EQ(found.tokens, greedy);
}

}  // namespace
}  // namespace tessera
