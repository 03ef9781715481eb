#pragma once
/// Which tokens make sample k: a pure function of (seed, k). The position in the data is how many
/// samples were consumed.

#include <cstdint>
#include <span>
#include <string_view>

namespace tessera {

enum class SampleOrder {
  /// Every window once per epoch, in an order drawn anew for each.
  ShuffledWindows,
  /// Each sample begins anywhere (nanoGPT's way): windows overlap, some tokens are seen more often
  /// than others.
  RandomOffsets,
};

struct SamplerOptions {
  std::int64_t context = 0;  // tokens per sample
  std::uint64_t seed = 0;
  SampleOrder order = SampleOrder::ShuffledWindows;
};

/// Draws training samples from a token stream that must outlive it. All functions may be called
/// from any thread.
class Sampler {
 public:
  /// Errors: Fault::Usage: context < 1. Fault::Data: not one window of context + 1 tokens.
  Sampler(std::span<const std::int32_t> tokens, const SamplerOptions& options);

  /// Windows in the stream, (n - 1) / context: neighbours share one token, a label of one and the
  /// first id of the next, so an epoch predicts each token once.
  std::int64_t windows_per_epoch() const;
  /// The epoch that sample k belongs to; for random offsets, the number of times that as many
  /// tokens were drawn.
  std::int64_t epoch(std::int64_t sample) const { return sample / windows_per_epoch(); }

  /// The first token of sample k. In shuffled windows, the tokens that do not fill a window, (n -
  /// 1) mod context, are left out at the front and the back, differently in each epoch.
  std::int64_t offset(std::int64_t sample) const;

  /// Fills ids and labels [count, context] with samples [first, first + count); labels are the
  /// tokens one later.
  void fill(std::int64_t first, std::int64_t count, std::span<std::int32_t> ids,
            std::span<std::int32_t> labels) const;

 private:
  std::span<const std::int32_t> tokens_;
  std::int64_t context_;
  SampleOrder order_;
  std::uint64_t order_key_, shift_key_, offset_key_;
};

/// "shuffled-windows", "random-offsets"
std::string_view to_text(SampleOrder order);
/// Reads what to_text writes. Errors: any other name.
SampleOrder parse_sample_order(std::string_view name);

}  // namespace tessera
