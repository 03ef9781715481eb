#pragma once
/// Pictures as the data of a run.

#include "tessera/config/config.h"
#include "tessera/train/data_source.h"

namespace tessera {

struct Dataset;

/// config.data names a file of pictures.
bool trains_on_pictures(const RunConfig& config);

/// Opens it, and that of valid-data. Errors: Fault::Usage: several files; sizes that are not those
/// of the model; fields that do nothing with pictures. Those of ImageSet::open.
Dataset load_pictures(const RunConfig& config, const KnownModel& model);
/// Opens config.test_data, all of which is held out and which may lack labels. Errors: the same.
Dataset load_test_pictures(const RunConfig& config, const Dataset& trained, bool reads_labels);
/// DataSource::complete: classes 0 to those of the pictures.
void complete_from_pictures(RunConfig& config, const Dataset& data);

}  // namespace tessera
