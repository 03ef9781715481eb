#pragma once
/// Samples that a program makes itself as the data of a run.

#include "tessera/config/config.h"
#include "tessera/sources/data_source.h"

namespace tessera {

struct Dataset;

/// As config.program_data says. Its vocabulary is that of weights, that of the tokenizer that is
/// chosen, or so many ids as vocab-size says. Errors: Fault::Usage: none of these; as of
/// load_tokenizer.
Dataset load_program_data(const RunConfig& config, const KnownModel& model);
/// DataSource::load_test. Errors: Fault::Usage, always.
Dataset refuse_test_of_program(const RunConfig& config, const Dataset& trained, bool reads_labels);

}  // namespace tessera
