#include "tessera/token_files/sampler.h"

#include <string>

#include "tessera/base/error.h"
#include "tessera/base/hash.h"
#include "tessera/base/philox.h"
#include "tessera/base/text.h"
#include "tessera/token_files/permutation.h"
#include "tessera/token_files/token_stream.h"

namespace tessera {

Sampler::Sampler(std::span<const std::int32_t> tokens, const SamplerOptions& options)
    : tokens_(tokens),
      context_(options.context),
      order_(options.order),
      order_key_(random_key(options.seed, "data.order")),
      shift_key_(random_key(options.seed, "data.shift")),
      offset_key_(random_key(options.seed, "data.offset")) {
  require(context_ >= 1, "context ", context_, " is not positive; give the tokens per sample");
  if (static_cast<std::int64_t>(tokens_.size()) <= context_) {
    const std::string shorter =
        tokens_.size() < 2 ? "" : text(", or a context of at most ", tokens_.size() - 1);
    fail(Fault::Data, "context ", context_, " is longer than the data: a sample takes ",
         context_ + 1, " tokens (one more for the last label) but the training text has ",
         tokens_.size(), "; use a longer text", shorter);
  }
}

std::int64_t Sampler::windows_per_epoch() const {
  return (static_cast<std::int64_t>(tokens_.size()) - 1) / context_;
}

std::int64_t Sampler::offset(std::int64_t sample) const {
  check(sample >= 0, "sample ", sample);
  const auto num_tokens = static_cast<std::int64_t>(tokens_.size());
  if (order_ == SampleOrder::RandomOffsets) {
    return uniform_index(philox(offset_key_, static_cast<std::uint64_t>(sample), 0),
                         num_tokens - context_);
  }
  const std::int64_t windows = windows_per_epoch(), turn = epoch(sample);
  const auto stream = static_cast<std::uint64_t>(turn);
  const std::uint64_t window = permute(static_cast<std::uint64_t>(sample - turn * windows),
                                       static_cast<std::uint64_t>(windows), order_key_, stream);
  const std::int64_t left_out = (num_tokens - 1) % context_;
  return uniform_index(philox(shift_key_, 0, stream), left_out + 1) +
         static_cast<std::int64_t>(window) * context_;
}

void Sampler::fill(std::int64_t first, std::int64_t count, std::span<std::int32_t> ids,
                   std::span<std::int32_t> labels) const {
  const auto wanted = static_cast<std::size_t>(count * context_);
  check(ids.size() == wanted && labels.size() == wanted, "buffers of ", ids.size(), " and ",
        labels.size(), " tokens for ", count, " samples of ", context_);
  for (std::int64_t i = 0; i < count; ++i) {
    copy_window(tokens_, offset(first + i), context_, ids.data() + i * context_,
                labels.data() + i * context_);
  }
}

std::string_view to_text(SampleOrder order) {
  return order == SampleOrder::ShuffledWindows ? "shuffled-windows" : "random-offsets";
}

SampleOrder parse_sample_order(std::string_view name) {
  for (const SampleOrder order : {SampleOrder::ShuffledWindows, SampleOrder::RandomOffsets}) {
    if (name == to_text(order)) return order;
  }
  fail(Fault::Usage, "unknown order of samples '", name,
       "'; known are shuffled-windows and random-offsets");
}

}  // namespace tessera
