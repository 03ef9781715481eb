#pragma once
/// Texts that are read while the run trains as its data.

#include <string>

#include "tessera/checkpoint/checkpoint.h"
#include "tessera/config/config.h"
#include "tessera/sources/data_source.h"

namespace tessera {

struct Dataset;
struct RecordedRun;

/// Where some of the data is JSON lines, their text-column is "text", unless another one is told.
void find_stream_column(RunConfig& config);

/// Opens the files; valid-data is read whole. Errors: Fault::Usage: fields that do nothing with a
/// stream, or need what only the whole text tells; token files; as of parse_blend, StreamedText.
Dataset load_stream(const RunConfig& config, const KnownModel& model);
/// DataSource::load_test.
Dataset load_test_of_stream(const RunConfig& config, const Dataset& trained, bool reads_labels);
/// DataSource::settle: without valid-data nothing is held out.
void settle_stream(RunConfig& config, const Dataset& data);

/// StreamedText::go_on, of data that is a stream; of other data than the checkpoint's, or in another
/// order, its places say nothing. Errors: of it.
std::string go_on_in_stream(const Dataset& data, const RunConfig& config, const RecordedRun& run,
                            const Checkpoint& from);
/// Token ids of texts that are held while the run trains.
std::int64_t tokens_in_memory(const Dataset& data, const RunConfig& config);

}  // namespace tessera
