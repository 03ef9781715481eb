#pragma once
/// Token files as the data of a run.

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/data/dataset.h"
#include "tessera/train/config.h"

namespace tessera {

/// config.data names token files. Errors: Fault::Usage: as of names_token_files.
bool trains_on_token_files(const RunConfig& config);

/// Opens them. Errors: Fault::Usage: vocab-size is open, a seed that NumPy does not take, no
/// eod-token where one is needed, fields
/// that do nothing with token files, a validation text; those of open_token_source.
Dataset load_token_files(const RunConfig& config);

/// Errors: Fault::Usage: one of the fields `names` was told, and does nothing with `what`;
/// `instead` says what to do.
void refuse_told(const RunConfig& config, std::initializer_list<std::string_view> names,
                 std::string_view what, std::string_view instead);

/// Of data that is no token files. Errors: Fault::Usage: a field that was told and does nothing.
void refuse_fields_of_token_files(const RunConfig& config);

/// The order of samples depends on how many passes over the data the steps take. Errors:
/// Fault::Usage: it is another one than that of the run that is resumed, `there`, and changes are
/// not allowed; where they are, `notices` says so.
void compare_token_order(const RunConfig& here, const RunConfig& there, const Dataset& data,
                         std::vector<std::string>& notices);

}  // namespace tessera
