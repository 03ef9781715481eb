#include "tessera/sources/row_data.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/base/words.h"
#include "tessera/config/fields/row.h"
#include "tessera/config/given_fields.h"
#include "tessera/data/choice_rows.h"
#include "tessera/data/dataset.h"
#include "tessera/data/dialogue_rows.h"
#include "tessera/data/encoded_lines.h"
#include "tessera/data/images.h"
#include "tessera/data/label_kind.h"
#include "tessera/data/preference_rows.h"
#include "tessera/data/question_rows.h"
#include "tessera/data/rows.h"
#include "tessera/data/tagged_rows.h"
#include "tessera/files/other_kinds.h"
#include "tessera/sources/choice_columns.h"
#include "tessera/sources/dialogue_data.h"
#include "tessera/token_files/token_files.h"

namespace tessera {

namespace {

/// Names by which texts and labels are found. Source: the tables of GLUE, as its authors and the
/// library datasets name their columns, and those of SNLI.
struct UsualTexts {
  std::string_view first, second;  // second empty: one text
};
constexpr UsualTexts kUsualTexts[] = {{"sentence1", "sentence2"},
                                      {"#1 String", "#2 String"},
                                      {"question1", "question2"},
                                      {"premise", "hypothesis"},
                                      {"question", "sentence"},
                                      {"text_a", "text_b"},
                                      {"sentence", ""},
                                      {"text", ""},
                                      {"review", ""}};
constexpr UsualTexts kUsualGroups[] = {{"anchor", "positive"},     {"query", "positive"},
                                       {"sentence1", "sentence2"}, {"question", "answer"},
                                       {"query", "answer"},        {"query", "document"}};
constexpr std::string_view kUsualNegative = "negative";
constexpr std::string_view kUsualLabels[] = {"label", "labels", "Quality", "is_duplicate",
                                             "gold_label"};
constexpr std::int64_t kMostOpenContext = 512, kContextStep = 8;

TableOptions table_options(const RunConfig& config) {
  return {.format = find_word<TableFormat>(kTableFormats, config.data_format),
          .names = config.column_names,
          .bad_rows = config.skip_bad_rows ? BadRows::LeaveOut : BadRows::LeaveOutFew};
}

RowsChoice rows_choice(const RunConfig& config) {
  RowsChoice out{.paths = config.data,
                 .valid_paths = config.valid_data,
                 .columns = {config.text_column},
                 .label_column = config.label_column,
                 .label_separator = config.label_separator,
                 .labels = family_task(config.model).labels,
                 .table = table_options(config),
                 .held_out = config.held_out};
  for (const std::string* other :
       {&config.target_column, &config.text_pair_column, &config.negative_column}) {
    if (!other->empty()) out.columns.push_back(*other);
  }
  out.needs_texts = is_of_groups(config.model);
  if (is_of_choices(config.model)) {
    out.columns = listed_columns(config.text_column);
    out.choice_columns = listed_columns(config.text_pair_column);
    out.most_choices = config.model.texts;
  }
  return out;
}

/// How rows of a kind are read: with a vocabulary to make, or one that there is.
struct RowsReader {
  RowsKind kind;
  Dataset (*make)(const RowsChoice& choice, const VocabularyChoice& vocabulary);
  Dataset (*load)(const RowsChoice& choice, const Vocabulary& vocabulary);
  std::string (*digest)(const RowsChoice& choice);
};
constexpr RowsReader kReaders[] = {
    {RowsKind::None, load_rows, load_rows, rows_digest},  // columns of tables as texts
    {RowsKind::Tables, load_rows, load_rows, rows_digest},
    {RowsKind::TaggedWords, load_tagged_rows, load_tagged_rows, tagged_rows_digest},
    {RowsKind::Questions, load_questions, load_questions, questions_digest},
    {RowsKind::TextGroups, load_rows, load_rows, rows_digest},
    {RowsKind::Choices, load_choices, load_choices, choices_digest},
    {RowsKind::Preferences, load_preferences, load_preferences, lines_digest}};
constexpr RowsReader kDialogueReader = {RowsKind::None, load_dialogues, load_dialogues,
                                        lines_digest};

/// Rules of dialogues hold for the messages of preferences too.
bool reads_dialogues(const RowsReader& reader) {
  return &reader == &kDialogueReader || reader.kind == RowsKind::Preferences;
}

/// Of the rows at `paths`.
const RowsReader& reader_of(const RunConfig& config, const std::vector<std::string>& paths) {
  if (are_dialogues(config, paths)) return kDialogueReader;
  return *std::ranges::find(kReaders, rows_of(config.model), &RowsReader::kind);
}

void refuse_token_files(const RunConfig& config, const std::vector<std::string>& paths) {
  require(!names_token_files(paths), "text-column '", config.text_column, "' is a column of a ",
          "table, but '", paths.back(), "' is token files; leave it out");
}

}  // namespace

void find_columns(RunConfig& config, bool may_lack_labels) {
  if (is_of_choices(config.model) && !config.data.empty()) {
    refuse_token_files(config, config.data);
    return find_choice_columns(config, text_files(config.data).front(), table_options(config),
                               may_lack_labels);
  }
  const bool groups = is_of_groups(config.model);
  if (!(groups || is_of_tables(config.model)) || config.data.empty()) return;
  if (!config.text_column.empty() && (groups || !config.label_column.empty())) return;
  refuse_token_files(config, config.data);
  const std::string path = text_files(config.data).front();
  const std::vector<std::string> names = table_columns(path, table_options(config));
  const auto has = [&](std::string_view name) {
    return std::ranges::find(names, name) != names.end();
  };
  const auto lacks = [&](std::string_view what, std::string_view field, const auto& usual) {
    fail(Fault::Data, "'", path, "' has no column of ", what, " with a usual name (", usual,
         "); its columns are ", column_names_text(names), ": select one with ", field);
  };
  if (config.text_column.empty()) {
    const std::span<const UsualTexts> all =
        groups ? std::span<const UsualTexts>(kUsualGroups) : kUsualTexts;
    const auto found = std::ranges::find_if(all, [&](const UsualTexts& usual) {
      return has(usual.first) && (usual.second.empty() || has(usual.second));
    });
    if (found == all.end()) {
      std::vector<std::string> usual;
      for (const auto& [first, second] : all)
        usual.push_back(second.empty() ? std::string(first) : text(first, " and ", second));
      lacks("texts", "text-column", join(usual, "; "));
    }
    config.text_column = found->first;
    if (config.text_pair_column.empty()) config.text_pair_column = found->second;
    if (groups && config.negative_column.empty() && has(kUsualNegative))
      config.negative_column = kUsualNegative;
  }
  if (groups) return;
  if (config.label_column.empty()) {
    std::vector<std::string_view> usual(std::begin(kUsualLabels), std::end(kUsualLabels));
    const std::string_view own = family_task(config.model).labels->usual_column;
    if (!own.empty()) usual.push_back(own);
    const auto found =
        !own.empty() && has(own) ? usual.end() - 1 : std::ranges::find_if(usual, has);
    const bool none = found == usual.end();
    if (none && !may_lack_labels) lacks("labels", "label-column", join(usual));
    config.label_column = none ? usual.front() : *found;
  }
}

void complete_from_rows(RunConfig& config, const Dataset& data) {
  ModelConfig& model = config.model;
  if (!is_of_rows(model)) return;
  if (model.classes == 0) model.classes = std::ssize(data.label_names);
  if (is_of_groups(model) && model.texts == 0) model.texts = data.texts().rows.columns;
  if (is_of_choices(model) && model.texts == 0) model.texts = data.texts().rows.columns - 1;
  if (model.context != 0) return;
  ModelConfig any = model;
  any.context = 1;
  // Texts to classify may be cut, and answers are not.
  const bool may_cut = rows_of(model) != RowsKind::Preferences;
  const std::int64_t most = model.positions > 0 ? model.positions
                            : may_cut           ? kMostOpenContext
                                                : kMaxContext,
                     longest = task_of(any).longest_sample(data);
  model.context = std::min((longest + kContextStep - 1) / kContextStep * kContextStep, most);
  if (config.bucket_lengths.empty()) return;
  const std::vector<std::int64_t> buckets = parse_bucket_lengths(config.bucket_lengths);
  model.context = std::min(std::max(model.context, buckets.back()), most);
}

Dataset load_row_data(const RunConfig& config, const KnownModel& model) try {
  refuse_token_files(config, config.data);
  if (!config.valid_data.empty()) refuse_token_files(config, config.valid_data);
  constexpr std::string_view kWhat = "rows of a table";
  refuse_given(config, data_fields(rows::kTokenFiles), kWhat,
               "leave it out, or give token files, as preprocess_data makes them");
  refuse_given(config, {"reset-position-ids", "reset-attention-mask"}, kWhat,
               "packing bfd does both");
  RowsChoice choice = rows_choice(config);
  const RowsReader& reader = reader_of(config, config.data);
  if (reads_dialogues(reader))
    choice.dialogues = dialogue_rules(config);
  else
    refuse_given(config, data_fields(rows::kDialogues), "texts of a column",
                 "leave it out, or give dialogues");
  choice.known_labels = model.labels;
  choice.keeps_labels = model.keeps_labels;
  choice.classes = config.model.classes;
  return model.vocabulary != nullptr ? reader.load(choice, *model.vocabulary)
                                     : reader.make(choice, vocabulary_choice(config));
} catch (const Error& error) {
  throw in_vocabulary_of(model, error);
}

Dataset load_test_rows(const RunConfig& config, const Dataset& trained, bool reads_labels) {
  refuse_token_files(config, config.test_data);
  RowsChoice choice = rows_choice(config);
  choice.paths = config.test_data;
  choice.valid_paths.clear();
  choice.known_labels = trained.label_names;
  choice.keeps_labels = choice.tests = true;
  choice.reads_labels = reads_labels;
  const EncodedQuestions* const questions = trained.questions();
  choice.some_without_answer = questions != nullptr && questions->some_without;
  const RowsReader& reader = reader_of(config, config.test_data);
  if (reads_dialogues(reader)) choice.dialogues = dialogue_rules(config);
  return reader.load(choice, trained.vocabulary);
}

std::string row_digest(const RunConfig& config, VocabularyKind) {
  return reader_of(config, config.data).digest(rows_choice(config));
}

bool rows_fit(const Dataset& data, const RunConfig& config, const Task& task, Problems& problems) {
  const bool of_rows = is_of_rows(config.model), rows = data.has_rows(),
             pairs = rows && data.texts().rows.columns > 1;
  const std::string_view none = to_text(Packing::None);
  if (rows && !of_rows && pairs != task.reads_pairs) {
    problems.add(
        pairs ? text("family ", config.model.family, " trains on texts of one column; leave ",
                     "target-column '", config.target_column, "' out")
              : text("family ", config.model.family, " trains on pairs, but text-column '",
                     config.text_column, "' is one column; give the targets with target-column"),
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
  const std::int64_t labels = std::ssize(data.label_names);
  if (labels > config.model.classes) {
    problems.add(
        text("classes is ", config.model.classes, ", but the data has ", labels,
             " labels: ", label_names_text(data.label_names), "; give 0 or at least ", labels),
        {"classes"});
    return false;
  }
  if (is_of_groups(config.model) && data.texts().rows.columns != config.model.texts) {
    problems.add(text("texts is ", config.model.texts, ", but rows have ",
                      data.texts().rows.columns, " texts; give 0, or ", config.model.texts,
                      " columns with text-column, text-pair-column and negative-column"),
                 {"texts", "text-pair-column", "negative-column"});
    return false;
  }
  const bool of_labelled_texts = of_rows && data.questions() == nullptr;
  const bool have_lengths = (task.reads_pairs && data.token_files() == nullptr) ||
                            of_labelled_texts || (rows && config.packing == none);
  if (!config.bucket_lengths.empty() && !have_lengths) {
    problems.add(text("bucket-lengths ", config.bucket_lengths, " does nothing here: all samples ",
                      "are as long as the context; leave it out, or train on pairs, or on ",
                      "documents of a table with packing ", none),
                 {"bucket-lengths", "packing"});
    return false;
  }
  return true;
}

std::string notice_of_other_kinds(const RunConfig& config) {
  if (!data_source(config).takes_files) return "";
  const bool pairs = has_task(config.model, kSeq2SeqLm);
  for (const auto* const paths : {&config.data, &config.valid_data, &config.test_data}) {
    for (const std::string& path : *paths) {
      const auto format = table_format(path);
      if (format && !(*format == TableFormat::Tsv && pairs))
        return text("'", path, "' is read whole, as text; to train on a column, ",
                    "give text-column");
      if (const std::string kind = other_kind_at(path); !kind.empty())
        return text("'", path, "' is read as bytes, but is ", kind);
    }
  }
  return "";
}

}  // namespace tessera
