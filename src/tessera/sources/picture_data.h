#pragma once
/// Pictures as the data of a run.

#include <string>
#include <vector>

#include "tessera/config/config.h"
#include "tessera/sources/data_source.h"

namespace tessera {

struct Dataset;

/// config.data names pictures: a file of tensors, or, of a model of pictures, folders or files.
bool trains_on_pictures(const RunConfig& config);
/// The data, or the test data, are pictures in files of their own.
bool reads_picture_files(const RunConfig& config);

/// Opens them, and those of valid-data, or of the folder's own part for that. Errors: Fault::Usage:
/// several files of tensors; sizes that are not those of the model; fields that do nothing with
/// pictures. Those of ImageSet::open, list_pictures and PictureFolder.
Dataset load_pictures(const RunConfig& config, const KnownModel& model);
/// Opens config.test_data, all of which is held out and which may lack labels. Without
/// `reads_labels` folders with other names than the classes are no labels. Errors: the same.
Dataset load_test_pictures(const RunConfig& config, const Dataset& trained, bool reads_labels);
/// DataSource::settle: image-processor is what its files are read by.
void settle_pictures(RunConfig& config, const Dataset& data);
/// DataSource::complete: classes 0 to those of the pictures.
void complete_from_pictures(RunConfig& config, const Dataset& data);

}  // namespace tessera
