#include "tessera/token_files/token_stream.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tessera/base/counted.h"
#include "tessera/base/error.h"

namespace tessera {

std::int64_t count_to_train(std::int64_t count, double held_out) {
  // A millionth guards whole products against the rounding of the fraction.
  return static_cast<std::int64_t>(
      std::floor((1.0 - held_out) * static_cast<double>(count) + 1e-6));
}

TokenStream::TokenStream(std::vector<std::int32_t> ids, double held_out) : ids_(std::move(ids)) {
  if (ids_.empty()) fail(Fault::Data, "the text is empty: it has 0 tokens; give a longer text");
  require(held_out >= 0 && held_out < 1, "held-out fraction ", held_out,
          " is not in [0, 1); give the share of the text to validate on, like 0.1");
  num_train_ = static_cast<std::size_t>(count_to_train(std::ssize(ids_), held_out));
}

TokenStream TokenStream::none() {
  TokenStream out({0}, 0.0);
  out.ids_.clear();
  out.num_train_ = 0;
  return out;
}

TokenStream TokenStream::held_out_alone(std::vector<std::int32_t> ids) {
  TokenStream out(std::move(ids), 0.0);
  out.num_train_ = 0;
  out.held_out_apart_ = true;
  return out;
}

void require_ids(std::span<const std::int32_t> ids, std::int64_t vocabulary,
                 std::string_view where) {
  const auto bad = std::find_if(ids.begin(), ids.end(), [&](std::int32_t id) {
    return id < 0 || static_cast<std::int64_t>(id) >= vocabulary;
  });
  if (bad == ids.end()) return;
  fail(Fault::Data, where, ": token ", bad - ids.begin(), " is ", *bad,
       ", but the model has ids from 0 to ", vocabulary - 1,
       "; give data of the model's vocabulary, or a model with a larger vocab-size");
}

TokenStream::TokenStream(std::vector<std::int32_t> train, std::span<const std::int32_t> held_out)
    : TokenStream(std::move(train), 0.0) {
  ids_.insert(ids_.end(), held_out.begin(), held_out.end());
  held_out_apart_ = true;
}

void copy_window(std::span<const std::int32_t> tokens, std::int64_t begin, std::int64_t context,
                 std::int32_t* ids, std::int32_t* labels) {
  const auto num_labels = static_cast<std::int64_t>(tokens.size()) - 1;
  const std::int64_t full = std::clamp(num_labels - begin, std::int64_t{0}, context);
  if (full > 0) {
    const std::int32_t* from = tokens.data() + begin;
    std::copy_n(from, full, ids);
    std::copy_n(from + 1, full, labels);
  }
  std::fill(ids + full, ids + context, 0);
  std::fill(labels + full, labels + context, kIgnoredLabel);
}

EvalWindows::EvalWindows(std::span<const std::int32_t> tokens, std::int64_t context)
    : tokens_(tokens), context_(context) {
  require(context >= 1, "context ", context, " is not positive; give the tokens per sample");
  if (tokens.size() < 2) {
    fail(Fault::Data, "the held-out part has ",
         counted(static_cast<std::int64_t>(tokens.size()), "token"),
         " but validation needs at least 2 (one and its label); use a longer text or hold "
         "out more of it");
  }
}

std::int64_t EvalWindows::fill(std::int64_t first, std::int64_t count, std::span<std::int32_t> ids,
                               std::span<std::int32_t> labels) const {
  const auto wanted = static_cast<std::size_t>(count * context_);
  check(first >= 0 && ids.size() == wanted && labels.size() == wanted, "buffers of ", ids.size(),
        " and ", labels.size(), " tokens for ", count, " windows of ", context_);
  for (std::int64_t i = 0; i < count; ++i) {
    copy_window(tokens_, (first + i) * context_, context_, ids.data() + i * context_,
                labels.data() + i * context_);
  }
  const std::int64_t begin = std::min(first * context_, num_labels());
  return std::min((first + count) * context_, num_labels()) - begin;
}

}  // namespace tessera
