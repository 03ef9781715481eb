#include "tessera/token_files/gpt_indices.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"
#include "tessera/base/size.h"
#include "tessera/token_files/numpy_random.h"

namespace tessera {

namespace {

constexpr double kSeparateBelow = 0.80;  // of the samples of an epoch
constexpr std::int64_t kMostEpochs = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMost32 = std::numeric_limits<std::int32_t>::max();

/// The order of documents, with the last epoch shuffled on its own or not.
std::vector<std::int32_t> document_order(const GptIndexRequest& request, const GptIndexPlan& plan,
                                         NumpyRandom& random) {
  const auto per_epoch = static_cast<std::size_t>(request.last - request.first);
  std::vector<std::int32_t> out(static_cast<std::size_t>(size_product(
      {plan.epochs, request.last - request.first}, "entries (epochs x sequences of the data)")));
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<std::int32_t>(request.first + static_cast<std::int64_t>(i % per_epoch));
  const std::size_t together = out.size() - (plan.separate_last_epoch() ? per_epoch : 0);
  random.shuffle(std::span(out).first(together));
  if (together < out.size()) random.shuffle(std::span(out).subspan(together));
  return out;
}

/// Walks over the joined documents, `context` tokens at a time.
template <typename T>
std::vector<T> sample_begins(const GptIndexRequest& request, const GptIndexPlan& plan,
                             std::span<const std::int32_t> lengths,
                             std::span<const std::int32_t> documents) {
  std::vector<T> out;
  out.reserve(static_cast<std::size_t>(2 * (plan.samples + 1)));
  std::size_t document = 0;
  std::int64_t offset = 0;
  out.insert(out.end(), {0, 0});
  for (std::int64_t k = 0; k < plan.samples; ++k) {
    std::int64_t wanted = request.context + 1;
    for (;;) {
      const auto sequence = static_cast<std::size_t>(documents[document] - request.first);
      const std::int64_t there = lengths[sequence] - offset;
      if (there >= wanted) {
        offset += wanted - 1;  // the last token begins the next sample
        break;
      }
      wanted -= there;
      ++document;
      offset = 0;
    }
    out.push_back(static_cast<T>(document));
    out.push_back(static_cast<T>(offset));
  }
  return out;
}

template <typename T>
std::vector<T> sample_order(const GptIndexPlan& plan, NumpyRandom& random) {
  std::vector<T> out(static_cast<std::size_t>(plan.samples));
  std::iota(out.begin(), out.end(), T{0});
  const auto together = static_cast<std::size_t>(plan.shuffled_together);
  random.shuffle(std::span(out).first(together));
  if (together < out.size()) random.shuffle(std::span(out).subspan(together));
  return out;
}

template <typename T>
IntegerArray stored(const std::vector<T>& values, NpyType type, std::int64_t columns = 0) {
  return {std::span<const T>(values), type, columns};
}

}  // namespace

GptIndexPlan plan_gpt_indices(const GptIndexRequest& request, std::int64_t tokens_per_epoch) {
  check(request.context >= 1 && request.first <= request.last, "samples of ", request.context,
        " tokens from sequences ", request.first, " to ", request.last);
  const std::int64_t context = request.context;
  if (request.last > kMost32)
    fail(Fault::Data, "there are ", request.last, " sequences, but sample indices number at most ",
         kMost32, "; split the token files, and blend them");
  if (tokens_per_epoch < 2)
    fail(Fault::Data, "there ", tokens_per_epoch == 1 ? "is " : "are ",
         counted(tokens_per_epoch, "token"), " in ",
         counted(request.last - request.first, "sequence"),
         ", but at least 2 are needed, one and its label; give more data, or a larger part of it");
  GptIndexPlan out;
  out.tokens_per_epoch = tokens_per_epoch;
  if (request.samples) {
    const std::int64_t wanted =
        size_sum(size_product({std::max<std::int64_t>(*request.samples, 0), context},
                              "tokens of all samples"),
                 1, "tokens of all samples");
    out.epochs = std::max<std::int64_t>(1, (wanted + tokens_per_epoch - 1) / tokens_per_epoch);
  }
  require(out.epochs <= kMostEpochs, "these samples take ", out.epochs, " passes over ",
          counted(tokens_per_epoch, "token"), ", but at most ", kMostEpochs,
          " are possible; give fewer steps, or more data");
  out.samples =
      (size_product({out.epochs, tokens_per_epoch}, "tokens of all epochs") - 1) / context;
  out.shuffled_together = out.samples;
  if (out.epochs > 1) {
    const std::int64_t before = ((out.epochs - 1) * tokens_per_epoch - 1) / context;
    const std::int64_t of_last = *request.samples - before;
    const std::int64_t per_epoch = (tokens_per_epoch - 1) / context;
    if (of_last < static_cast<std::int64_t>(kSeparateBelow * static_cast<double>(per_epoch)))
      out.shuffled_together = before;
  }
  return out;
}

bool wide_begins(std::int64_t entries) { return entries > kMost32; }
bool wide_order(std::int64_t samples) { return samples >= std::int64_t{0xffffffff} - 1; }

GptIndices build_gpt_indices(const GptIndexRequest& request, const GptIndexPlan& plan,
                             std::span<const std::int32_t> lengths) {
  check(std::ssize(lengths) == request.last - request.first, "lengths of ", lengths.size(),
        " sequences for ", request.last - request.first);
  NumpyRandom random(request.seed);
  const std::vector<std::int32_t> documents = document_order(request, plan, random);
  const bool wide = wide_begins(std::ssize(documents));
  IntegerArray samples =
      wide
          ? stored(sample_begins<std::int64_t>(request, plan, lengths, documents), NpyType::I64, 2)
          : stored(sample_begins<std::int32_t>(request, plan, lengths, documents), NpyType::I32, 2);
  const bool many = wide_order(plan.samples);
  IntegerArray shuffle = many ? stored(sample_order<std::int64_t>(plan, random), NpyType::I64)
                              : stored(sample_order<std::uint32_t>(plan, random), NpyType::U32);
  return {stored(documents, NpyType::I32), std::move(samples), std::move(shuffle)};
}

}  // namespace tessera
