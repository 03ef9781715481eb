#include "tessera/train/generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tessera/base/hash.h"
#include "tessera/base/philox.h"
#include "tessera/train/beam_search.h"

namespace tessera {

namespace {

/// In [0, 1), a multiple of 2^-53.
double uniform(std::uint64_t key, std::uint64_t index) {
  const PhiloxBlock random = philox(key, index, 0);
  const std::uint64_t bits = static_cast<std::uint64_t>(random[0]) << 32 | random[1];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

/// A new line where the vocabulary has it.
std::int32_t start_token(const Vocabulary& vocabulary) {
  try {
    return vocabulary.encode("\n").front();
  } catch (const Error&) {
    return 0;
  }
}

}  // namespace

std::vector<std::string> problems(const GenerateOptions& o) {
  std::vector<std::string> out;
  if (o.tokens < 1) out.push_back(text("tokens is ", o.tokens, "; it must be 1 or more"));
  if (!(o.temperature >= 0 && o.temperature <= 100))
    out.push_back(text("temperature is ", o.temperature,
                       "; it must be at least 0 (the most likely token) and at most 100"));
  if (o.top_k < 0) out.push_back(text("top-k is ", o.top_k, "; it must be 0 (all) or more"));
  if (!(o.top_p > 0 && o.top_p <= 1))
    out.push_back(text("top-p is ", o.top_p, "; it must be above 0 and at most 1 (all)"));
  if (o.beams < 1 || o.beams > 1000)
    out.push_back(text("beams is ", o.beams, "; it must be from 1 to 1000"));
  if (!(std::abs(o.length_penalty) <= 100))
    out.push_back(text("length-penalty is ", o.length_penalty, "; it must be from -100 to 100"));
  return out;
}

std::int32_t draw(const std::vector<double>& logits, const GenerateOptions& options,
                  double random) {
  const auto best = std::max_element(logits.begin(), logits.end());
  if (options.temperature == 0) return static_cast<std::int32_t>(best - logits.begin());
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const bool few = options.top_k > 0 && options.top_k < static_cast<std::int64_t>(logits.size());
  if (few || options.top_p < 1) {
    const auto likelier = [&](std::int32_t a, std::int32_t b) {
      const double x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
      return x != y ? x > y : a < b;
    };
    const auto end = few ? order.begin() + options.top_k : order.end();
    std::partial_sort(order.begin(), end, order.end(), likelier);
    order.erase(end, order.end());
  }
  std::vector<double> upto;  // sums of weights
  double total = 0;
  for (const std::int32_t id : order) {
    total += std::exp((logits[static_cast<std::size_t>(id)] - *best) / options.temperature);
    upto.push_back(total);
  }
  if (options.top_p < 1) {
    const auto reached = std::lower_bound(upto.begin(), upto.end(), options.top_p * total);
    if (reached != upto.end()) upto.erase(reached + 1, upto.end());
    total = upto.back();
    order.resize(upto.size());
  }
  const auto at = std::upper_bound(upto.begin(), upto.end(), random * total);
  return order[std::min(static_cast<std::size_t>(at - upto.begin()), order.size() - 1)];
}

namespace {

/// The likeliest text that beams find.
Tokens search(TextModel& model, const Vocabulary& vocabulary, const Tokens& prompt,
              const GenerateOptions& options) {
  std::vector<Tokens> texts(static_cast<std::size_t>(options.beams), prompt);
  const BeamOptions how{
      .beams = options.beams, .tokens = options.tokens, .length_penalty = options.length_penalty};
  const auto next = [&](std::span<const std::int32_t> parents,
                        std::span<const std::int32_t> tokens) {
    if (!tokens.empty()) {
      std::vector<Tokens> grown;
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        grown.push_back(texts[static_cast<std::size_t>(parents[i])]);
        grown.back().push_back(tokens[i]);
      }
      texts = std::move(grown);
      model.reorder(parents);
    }
    return model.next(texts);
  };
  return beam_search(how, vocabulary.size(), next).tokens;
}

}  // namespace

Tokens generate(TextModel& model, const Vocabulary& vocabulary, Tokens prompt,
                const GenerateOptions& options) {
  if (prompt.empty()) prompt.push_back(start_token(vocabulary));
  model.begin();
  if (options.beams > 1) {
    for (const std::int32_t token : search(model, vocabulary, prompt, options)) {
      prompt.push_back(token);
      if (options.on_token) options.on_token(token);
    }
    return prompt;
  }
  const std::uint64_t key = random_key(options.seed, "sample");
  for (std::int64_t i = 0; i < options.tokens; ++i) {
    std::vector<double> logits = model.next(std::span(&prompt, 1)).front();
    logits.resize(std::min(logits.size(), static_cast<std::size_t>(vocabulary.size())));
    prompt.push_back(draw(logits, options, uniform(key, static_cast<std::uint64_t>(i))));
    if (options.on_token) options.on_token(prompt.back());
  }
  return prompt;
}

}  // namespace tessera
