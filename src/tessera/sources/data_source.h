#pragma once
/// The sources of data that a run can have, a row each: how data is found to be of a source, read,
/// and held against a model. A new source is a row, and an alternative of Dataset::content.

#include <string>
#include <string_view>
#include <vector>

#include "tessera/config/config.h"
#include "tessera/data/dataset.h"

namespace tessera {

/// What data is read with.
struct KnownModel {
  const Vocabulary* vocabulary = nullptr;  // that of weights which exist; nullptr: there are none
  std::string checkpoint = {};             // that has it; empty: a folder
  std::vector<std::string> labels = {};
  bool keeps_labels = false;  // the model goes on: other labels are refused
};

/// `error`, of encoding, which names the checkpoint.
Error in_vocabulary_of(const KnownModel& model, const Error& error);

struct DataSource {
  bool (*is_it)(const RunConfig& config);
  Dataset (*load)(const RunConfig& config, const KnownModel& model);
  /// config.test_data, all of which is held out, in the vocabulary and with the labels of
  /// `trained`. reads_labels: as RowsChoice's.
  Dataset (*load_test)(const RunConfig& config, const Dataset& trained, bool reads_labels);
  /// Dataset::digest of data that cannot be encoded; nullptr: there is no such data.
  std::string (*digest)(const RunConfig& config, VocabularyKind kind) = nullptr;
  /// Sets fields that the data settles, before the run is compared with one that it resumes.
  void (*settle)(RunConfig& config, const Dataset& data) = [](RunConfig&, const Dataset&) {};
  /// Sets sizes of the model that were left open.
  void (*complete)(RunConfig& config, const Dataset& data) = [](RunConfig&, const Dataset&) {};
  /// What helps where there is nothing to validate on.
  std::string (*without_held_out)(const RunConfig& config) = nullptr;
  bool reads_files = true;   // of config.data
  bool takes_files = false;  // of any kind, so that another one than was meant may be among them
  bool has_index = false;    // samples are an index, which is written beside the files
};

/// That of the data which `config` names. Errors: Fault::Usage: as of names_token_files.
const DataSource& data_source(const RunConfig& config);

}  // namespace tessera
