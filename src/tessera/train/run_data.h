#pragma once
/// The data of a run, of whatever kind: what trains, what is held out, and what is tested on.

#include <optional>
#include <string>

#include "tessera/config/problems.h"
#include "tessera/sources/data_source.h"
#include "tessera/train/prepare.h"

namespace tessera {

struct Dataset;

/// What trains and what is held out. None: it cannot be read, or `config` was refused before.
std::optional<Dataset> load_data(const RunConfig& config, const KnownModel& model,
                                 Problems& problems);

/// Dataset::digest of a text that cannot be encoded; empty where it cannot even be read.
std::string digest_of(const RunConfig& config, VocabularyKind kind);

/// Sets what is open of the model and follows from the data. Returns whether the model is to be
/// judged only now.
bool complete_model(RunConfig& config, const Dataset& data);

/// Of the ids that train: other ones of the same text mean that a tokenizer is read otherwise than
/// before. Empty: the data is no text.
std::string ids_digest(const Dataset& data);

/// Samples of token files are an index, which is written beside the files: who trains nothing draws
/// none of them.
enum class DrawSamples : std::uint8_t { Yes, UnlessIndexed };

/// Holds the data of a run against its task and its model; adds what is to be told of it to its
/// notices.
void check_data(PreparedRun& run, Problems& problems, DrawSamples draw = DrawSamples::Yes);

/// A vocabulary from a checkpoint may be larger than its model's. Errors: as of require_ids.
void require_ids_of(const Dataset& data, std::int64_t vocabulary);

/// Reads config.test_data, all of which is held out, in the vocabulary and with the labels of
/// `trained`. `reads_labels`: false for rows of tables that are predicted only, whose
/// labels may be others or none.
Dataset load_test_data(const RunConfig& config, const Dataset& trained, bool reads_labels = true);

/// Holds the ids of the run's data, which is known and has no problems, against its model. Reads
/// config.test_data into `run`: all of it is held out, in the vocabulary and with the labels of the
/// data that trains.
void check_ids_and_take_test(PreparedRun& run, Problems& problems,
                             DrawSamples draw = DrawSamples::Yes);

}  // namespace tessera
