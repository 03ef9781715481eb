#pragma once
/// Samples that a program makes itself as the data of a run.

#include "tessera/config/config.h"

namespace tessera {

struct Dataset;
class Vocabulary;

/// As config.program_data says. Its vocabulary is `of_weights`, that of the tokenizer that is
/// chosen, or so many ids as vocab-size says. Errors: Fault::Usage: none of these; as of
/// load_tokenizer.
Dataset load_program_data(const RunConfig& config, const Vocabulary* of_weights = nullptr);

}  // namespace tessera
