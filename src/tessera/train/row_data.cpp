#include "tessera/train/row_data.h"

#include "tessera/base/text.h"
#include "tessera/base/words.h"
#include "tessera/data/rows.h"
#include "tessera/train/fields/row.h"
#include "tessera/train/told_fields.h"

namespace tessera {

namespace {

RowsChoice rows_choice(const RunConfig& config) {
  RowsChoice out{.paths = config.data,
                 .valid_paths = config.valid_data,
                 .columns = {config.text_column},
                 .table = {.format = find_word<TableFormat>(kTableFormats, config.data_format),
                           .names = config.column_names},
                 .held_out = config.held_out};
  if (!config.target_column.empty()) out.columns.push_back(config.target_column);
  return out;
}

void refuse_token_files(const RunConfig& config, const std::vector<std::string>& paths) {
  require(!names_token_files(paths), "text-column '", config.text_column, "' is a column of a ",
          "table, and '", paths.back(), "' is token files, which have tokens alone; leave it out");
}

}  // namespace

Dataset load_row_data(const RunConfig& config, const Vocabulary* vocabulary) {
  refuse_token_files(config, config.data);
  if (!config.valid_data.empty()) refuse_token_files(config, config.valid_data);
  constexpr std::string_view kWhat = "rows of a table";
  refuse_told(config, data_fields(rows::kTokenFiles), kWhat,
              "leave it out, or give token files, as preprocess_data makes them");
  refuse_told(config, {"reset-position-ids", "reset-attention-mask"}, kWhat,
              "packing bfd does both");
  return vocabulary != nullptr ? load_rows(rows_choice(config), *vocabulary)
                               : load_rows(rows_choice(config), vocabulary_choice(config));
}

std::string row_digest(const RunConfig& config) { return rows_digest(rows_choice(config)); }

void find_row_problems(const RunConfig& config, Problems& problems) {
  if (trains_on_rows(config)) {
    if (config.text_column == config.target_column)
      problems.add(text("text-column and target-column are both '", config.text_column,
                        "'; give the column of sources and that of targets"),
                   {"text-column", "target-column"});
    if (config.packing == to_text(Packing::Bfd) &&
        !reads_field(config.model, "reset-attention-mask"))
      problems.add(text("packing bfd keeps the documents of a sample apart, which family ",
                        config.model.family, " cannot; give packing ", to_text(Packing::Wrapped)),
                   {"packing", "family"});
    return;
  }
  for (const std::string_view name : data_fields(rows::kRows)) {
    const auto told = config.asked_for.find(name);
    if (told != config.asked_for.end())
      problems.add(text(told->second, " does nothing without text-column; give the column whose ",
                        "texts train, or leave it out"),
                   {name, "text-column"});
  }
}

bool rows_fit(const Dataset& data, const RunConfig& config, const Task& task, Problems& problems) {
  const bool rows = data.rows.columns > 0, pairs = data.rows.columns > 1;
  const std::string_view none = to_text(Packing::None);
  if (rows && pairs != task.reads_pairs) {
    problems.add(
        pairs ? text("family ", config.model.family, " trains on texts of one column; leave ",
                     "target-column '", config.target_column, "' out")
              : text("family ", config.model.family, " trains on pairs, and text-column '",
                     config.text_column, "' is one column; give that of targets by target-column"),
        {"family", "target-column"});
    return false;
  }
  if (rows && config.packing != to_text(Packing::Wrapped) && !task.packs_documents) {
    problems.add(text("packing ", config.packing, " does nothing with family ", config.model.family,
                      ", which does not predict the next token of a document; ", "give packing ",
                      to_text(Packing::Wrapped)),
                 {"family", "packing"});
    return false;
  }
  const bool have_lengths =
      (task.reads_pairs && !data.token_files) || (rows && config.packing == none);
  if (!config.bucket_lengths.empty() && !have_lengths) {
    problems.add(text("bucket-lengths ", config.bucket_lengths, " does nothing here: all samples ",
                      "are as long as the context; leave it out, or train on pairs, or on ",
                      "documents of a table with packing ", none),
                 {"bucket-lengths", "packing"});
    return false;
  }
  return true;
}

std::string notice_of_unread_columns(const RunConfig& config) {
  if (trains_on_rows(config)) return "";
  for (const std::string& path : config.data) {
    const auto format = table_format(path);
    if (format && *format != TableFormat::Tsv)  // which may be pairs of texts
      return text("'", path, "' is read as a text, with all that is in it; to train on a column, ",
                  "give text-column");
  }
  return "";
}

}  // namespace tessera
