#pragma once
/// Which tokens make a sample of a causal model, as Megatron-LM decides it: documents are put in a
/// random order and joined, the joined text is cut into windows, and the windows are shuffled.

#include <cstdint>
#include <optional>
#include <span>

#include "tessera/token_files/npy.h"

namespace tessera {

struct GptIndexRequest {
  std::int64_t first = 0, last = 0;  // the sequences [first, last) of the token files
  std::int64_t context = 0;          // tokens of a sample; one more is read for the last label
  std::optional<std::int64_t> samples = std::nullopt;  // wanted; none: those of one epoch
  std::uint32_t seed = 1234;
};

/// How many passes over the sequences it takes, and what they give.
struct GptIndexPlan {
  std::int64_t tokens_per_epoch = 0;
  std::int64_t epochs = 1;
  std::int64_t samples = 0;  // at least as many as are wanted
  /// Samples of the epochs before the last one, if that is shuffled on its own because less than
  /// 80 % of it is wanted; else equal to `samples`.
  std::int64_t shuffled_together = 0;

  bool separate_last_epoch() const { return shuffled_together < samples; }
};

/// Errors: Fault::Data: fewer than two tokens; Fault::Usage: too many epochs.
GptIndexPlan plan_gpt_indices(const GptIndexRequest& request, std::int64_t tokens_per_epoch);

struct GptIndices {
  /// The sequences in the order in which they are joined: i32 [epochs * (last - first)].
  IntegerArray documents;
  /// Where samples begin: rows of (place in `documents`, token of that sequence), i32 or i64
  /// [samples + 1, 2]. Sample k ends with the token at which sample k + 1 begins.
  IntegerArray samples;
  /// The order of samples: u32 or i64 [samples].
  IntegerArray shuffle;
};

/// Whether numbers of so many entries, or of so many samples, are stored in 64 bits.
bool wide_begins(std::int64_t entries);
bool wide_order(std::int64_t samples);

/// `lengths` are those of sequences [request.first, request.last). The result is that of
/// megatron-core, bit for bit.
GptIndices build_gpt_indices(const GptIndexRequest& request, const GptIndexPlan& plan,
                             std::span<const std::int32_t> lengths);

}  // namespace tessera
