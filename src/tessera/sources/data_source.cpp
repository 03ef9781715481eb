#include "tessera/sources/data_source.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/config/row_fields.h"
#include "tessera/sources/picture_data.h"
#include "tessera/sources/program_data.h"
#include "tessera/sources/row_data.h"
#include "tessera/sources/stream_data.h"
#include "tessera/sources/text_data.h"
#include "tessera/sources/token_data.h"

namespace tessera {

namespace {

std::string apart_or_nothing(const RunConfig& config) {
  return text("held-out is ", config.held_out,
              "; give 0 to hold nothing out, or valid-data to validate ", "on another text");
}

/// The first that fits; texts are what is left.
constexpr DataSource kDataSources[] = {
    {.is_it = [](const RunConfig& config) { return !config.program_data.empty(); },
     .load = load_program_data,
     .load_test = refuse_test_of_program,
     .without_held_out = apart_or_nothing,
     .reads_files = false},
    {.is_it = streams,
     .load = load_stream,
     .load_test = load_test_of_stream,
     .settle = settle_stream,
     .without_held_out = apart_or_nothing},
    {.is_it = trains_on_rows,
     .load = load_row_data,
     .load_test = load_test_rows,
     .digest = row_digest,
     .complete = complete_from_rows,
     .without_held_out = apart_or_nothing},
    {.is_it = trains_on_token_files,
     .load = load_token_files,
     .load_test = load_test_token_files,
     .settle = settle_token_files,
     .without_held_out = [](const RunConfig&) -> std::string {
       return "with split 1,0,0 there is no validation; valid-data gives token files to validate "
              "on";
     },
     .has_index = true},
    {.is_it = trains_on_pictures,
     .load = load_pictures,
     .load_test = load_test_pictures,
     .settle = settle_pictures,
     .complete = complete_from_pictures,
     .without_held_out = apart_or_nothing},
    {.is_it = [](const RunConfig&) { return true; },
     .load = load_text_data,
     .load_test = load_test_text_data,
     .digest = text_data_digest,
     .without_held_out = apart_or_nothing,
     .takes_files = true},
};

}  // namespace

Error in_vocabulary_of(const KnownModel& model, const Error& error) {
  if (model.checkpoint.empty()) return error;
  return error.with(text("in the vocabulary of checkpoint '", model.checkpoint,
                         "', whose weights have no other tokens"));
}

const DataSource& data_source(const RunConfig& config) {
  return *std::ranges::find_if(kDataSources,
                               [&](const DataSource& source) { return source.is_it(config); });
}

}  // namespace tessera
