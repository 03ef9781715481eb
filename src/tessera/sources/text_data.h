#pragma once
/// Texts as the data of a run.

#include "tessera/sources/data_source.h"

namespace tessera {

/// Reads them, with a vocabulary that is made of them where `model` has none, and valid-data.
/// Errors: as of load_dataset and hold_out; Fault::Usage: fields that do nothing with texts; files
/// of token files.
Dataset load_text_data(const RunConfig& config, const KnownModel& model);
/// Errors: the same.
Dataset load_test_text_data(const RunConfig& config, const Dataset& trained, bool reads_labels);
/// DataSource::digest.
std::string text_data_digest(const RunConfig& config, VocabularyKind kind);

}  // namespace tessera
