#pragma once
/// Position ids, attention mask and loss mask of packed documents, for causal models.

#include <cstdint>
#include <span>

namespace tessera {

struct LeftToRightOptions {
  std::int32_t end_of_document = -1;  // its id; it belongs to the document that it ends
  bool reset_positions = false;       // positions count from the start of each document
  bool reset_attention = false;       // a token sees its own document only
  bool mask_loss = false;             // what follows the end of a document is not predicted
};

/// For each of `ids`: its position; the first token that it sees, which is what Megatron-LM's
/// [s, s] mask says with `mask[q][k] = k > q or k < first_seen[q]`; and whether its label counts.
/// The spans are as long as `ids`.
void left_to_right(std::span<const std::int32_t> ids, const LeftToRightOptions& options,
                   std::span<std::int32_t> positions, std::span<std::int32_t> first_seen,
                   std::span<std::uint8_t> counts);

}  // namespace tessera
