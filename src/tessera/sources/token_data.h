#pragma once
/// Token files as the data of a run.

#include <string>
#include <vector>

#include "tessera/config/config.h"
#include "tessera/sources/data_source.h"

namespace tessera {

struct Dataset;
class Vocabulary;

/// config.data names token files. Errors: Fault::Usage: as of names_token_files.
bool trains_on_token_files(const RunConfig& config);

/// Opens them. Their vocabulary is that of the run's tokenizer, that of weights where these have
/// one; without a tokenizer, numbers below vocab-size. Errors: Fault::Usage: neither is told; a
/// seed that NumPy does not take; no eod-token where one is needed, and no tokenizer that has one;
/// fields that do nothing with token files; a validation text; those of open_token_source and
/// load_tokenizer.
Dataset load_token_files(const RunConfig& config, const KnownModel& model = {});

/// Opens config.test_data, all of which is held out. Errors: as of load_token_files; test-data is a
/// text.
Dataset load_test_token_files(const RunConfig& config, const Dataset& trained, bool reads_labels);

/// config.eod_token, where it is open the end of a document of the data's tokenizer; -1: none.
std::int64_t eod_token_of(const RunConfig& config, const Vocabulary& vocabulary);

/// DataSource::settle: an eod-token that is open is the end of a document of the data's tokenizer,
/// if it has one; where nothing is in the part to validate on, held-out is 0.
void settle_token_files(RunConfig& config, const Dataset& data);

/// Of data that is no token files. Errors: Fault::Usage: a field that was given and does nothing.
void refuse_fields_of_token_files(const RunConfig& config);

/// Errors: Fault::Usage: one of them is the .bin or .idx of token files, which are named by their
/// prefix.
void refuse_parts_of_token_files(const std::vector<std::string>& paths);

/// The order of samples depends on how many passes over the data the steps take. Errors:
/// Fault::Usage: it is another one than that of the run that is resumed, `there`, and changes are
/// not allowed; where they are, `notices` says so.
void compare_token_order(const RunConfig& here, const RunConfig& there, const Task& task,
                         const Dataset& data, std::vector<std::string>& notices);

}  // namespace tessera
