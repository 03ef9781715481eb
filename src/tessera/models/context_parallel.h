#pragma once
/// Which exchange (ir/key_exchange.h) lets attention see the tokens of other context parallel ranks.

#include "tessera/models/parallel.h"

namespace tessera {

/// The one of `config`, or, where it leaves that open, the one by which a rank sends fewer numbers
/// in a step: KeyExchange::Heads where the ranks of tp x cp divide heads and groups of heads, or
/// KeyExchange::Ring.
KeyExchange key_exchange_of(const ParallelConfig& config, const ModelConfig& model);

/// Pins numbers of texts, [batch, texts] or [batch x texts, 1], so that each rank has all of its
/// samples.
void pin_texts(Strategy& strategy, const std::vector<std::string>& rows);

/// Pins what attention reads to all tokens of some heads, and what it returns to some tokens. `rows`:
/// the axes of the batch.
void pin_heads(Strategy& strategy, const std::vector<std::string>& rows);

/// Says so where heads cannot be exchanged.
void find_exchange_problems(const ParallelConfig& config, const ModelConfig& model,
                            FieldProblems& problems);

}  // namespace tessera
