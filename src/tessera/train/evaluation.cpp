#include "tessera/train/evaluation.h"
#include "tessera/sources/dialogue_data.h"

#include <algorithm>
#include <array>
#include <memory>

#include "tessera/base/text.h"
#include "tessera/base/words.h"
#include "tessera/config/fields.h"
#include "tessera/config/recorded.h"
#include "tessera/data/images.h"
#include "tessera/data/question_rows.h"
#include "tessera/data/unknown_tokens.h"
#include "tessera/models/family.h"
#include "tessera/sources/picture_data.h"
#include "tessera/sources/row_data.h"
#include "tessera/sources/sample_choices.h"
#include "tessera/tensor/ignored_label.h"
#include "tessera/train/epoch_judge.h"
#include "tessera/train/measured_runs.h"
#include "tessera/train/pretrained_start.h"
#include "tessera/train/programs.h"
#include "tessera/train/run_data.h"
#include "tessera/train/run_source.h"
#include "tessera/train/text_model.h"
#include "tessera/train/validation.h"

namespace tessera {

namespace {

constexpr std::string_view kDataFields[] = {"text-column",
                                            "text-pair-column",
                                            "target-column",
                                            "label-column",
                                            "label-separator",
                                            "column-names",
                                            "data-format",
                                            "skip-bad-rows",
                                            "image-processor",
                                            "tokenizer",
                                            "tokenizer-type",
                                            "vocab-file",
                                            "merge-file",
                                            "bf16",
                                            "fp16",
                                            "mixed-precision"};

void take_fields(RunConfig& to, const RunConfig& from, std::span<const std::string_view> names,
                 bool given_alone) {
  for (const std::string_view name : names) {
    if (given_alone && from.defaulted.contains(name)) continue;
    const Field& field = *find_field(name).field;
    copy_field(field, to, from);
  }
}

constexpr const char* kPrediction = "prediction";

/// Names of the classes of a folder: their numbers where nobody named them.
std::vector<std::string> labels_of(const PretrainedModel& from) {
  std::vector<std::string> out = from.labels();
  if (!out.empty()) return out;
  for (std::int64_t i = 0; i < from.config().classes; ++i) out.push_back(text(i));
  return out;
}

Vocabulary vocabulary_at(const RunConfig& config, const std::string& path) {
  if (!reads_field(config.model, "vocab-size")) return Vocabulary::ids(1);
  const TokenizerChoice choice = tokenizer_choice(config);
  require(!choice.none(), "'", path, "' has no tokenizer to encode ",
          "texts; copy its files there, or give --tokenizer");
  return Vocabulary::tokenizer(load_tokenizer(choice));
}

Evaluation open_model(const std::string& path, const RunConfig& asked,
                      std::vector<std::string>& labels) {
  if (PretrainedModel::is_at(path)) {
    Evaluation out = open_pretrained(path, asked);
    labels = labels_of(*out.pretrained);
    return out;
  }
  Evaluation out;
  RunConfig init = asked;
  init.init_from = path;
  Source source = open_init(init);
  out.config = source.run.config;
  take_fields(out.config, asked, kDataFields, /*given_alone=*/true);
  out.vocabulary = std::move(source.run.vocabulary);
  labels = std::move(source.run.labels);
  out.checkpoint.emplace(std::move(source.checkpoint));
  return out;
}

/// A file whose name says what it is is read so, whatever that of the training was.
void take_data_format(RunConfig& config, const RunConfig& asked) {
  if (asked.defaulted.contains("data-format") && table_format(config.test_data.front()))
    config.data_format = kDataFormats[0];
}

/// Samples of rows are as long as the longest, as far as positions reach, and have as many choices
/// as the data.
void leave_length_open(ModelConfig& model) {
  if (!is_of_rows(model)) return;
  if (model.positions == 0 && reads_field(model, "positions")) model.positions = model.context;
  model.context = 0;
  if (is_of_choices(model)) model.texts = 0;
}

/// It writes a text from another one.
bool writes_texts(const Task& task) { return task.text && task.text->source > 0; }

TableOptions options_of(const RunConfig& config) {
  std::vector<std::string> nested;  // lists of choices
  if (is_of_choices(config.model)) nested = listed_columns(config.text_pair_column);
  return {.format = find_word<TableFormat>(kTableFormats, config.data_format),
          .names = config.column_names,
          .bad_rows = config.skip_bad_rows ? BadRows::LeaveOut : BadRows::Refuse,
          .nested = std::move(nested)};
}

/// The columns of texts of a table; empty: the data is none.
std::vector<std::string> text_columns(const RunConfig& config) {
  std::vector<std::string> out;
  const bool groups = is_of_groups(config.model);
  if (is_of_choices(config.model)) {
    out = listed_columns(config.text_column);
    for (std::string& name : listed_columns(config.text_pair_column))
      out.push_back(std::move(name));
    return out;
  }
  if (is_of_rows(config.model) && !is_of_tables(config.model) && !groups) return out;
  for (const std::string* name : {&config.text_column, &config.text_pair_column,
                                  &config.negative_column, &config.target_column}) {
    if (!name->empty()) out.push_back(*name);
  }
  return out;
}

/// What texts are written from: a column, or what stands before the tab of each line.
std::vector<GivenText> texts_to_write_from(const RunConfig& config) {
  const std::string& path = config.test_data.front();
  std::vector<GivenText> out;
  if (!config.text_column.empty()) {
    Table table = read_table(path, std::array{config.text_column}, options_of(config));
    for (std::size_t row = 0; row < table.lines.size(); ++row)
      out.push_back({std::move(table.columns[0][row]),
                     text("line ", table.lines[row], " of '", path, "'"), Fault::Data});
    return out;
  }
  out = given_lines(path);
  for (GivenText& given : out)
    given.text.resize(std::min(given.text.find('\t'), given.text.size()));
  return out;
}

/// A dataset that trained the model, as far as those to test on ask.
Dataset trained_on(const Vocabulary& vocabulary, std::vector<std::string> labels) {
  Dataset out{vocabulary, Texts{TokenStream::none(), {}, {}}, ""};
  out.label_names = std::move(labels);
  return out;
}

/// The task of the model at the length that the data has.
Task load_evaluated(Evaluation& out, std::vector<std::string> labels, bool predicts) {
  RunConfig& config = out.config;
  try {
    const bool in_column =
        is_of_tables(config.model) || is_of_choices(config.model) || reads_picture_files(config);
    out.data.emplace(load_test_data(config, trained_on(out.vocabulary, std::move(labels)),
                                    /*reads_labels=*/!predicts || !in_column));
  } catch (const Error& error) {
    const bool columns = is_of_tables(config.model) || !config.text_column.empty();
    throw columns ? error.with(text("texts are read from ", column_names_text(text_columns(config)),
                                    " and labels from '", config.label_column, "'; --text-column, ",
                                    "--text-pair-column and --label-column select others"))
                  : error;
  }
  const Dataset& data = *out.data;
  data_source(config).complete(config, data);
  Problems problems;
  problems.add(tessera::problems(config.model));
  problems.raise();
  Task task = task_of(config.model);
  const std::vector<DataKind> taken = data_taken(task);
  if (std::ranges::find(taken, data.kind()) == taken.end())
    fail(Fault::Usage, "a model of family ", config.model.family, " takes ", to_text(taken.front()),
         ", and '", config.test_data.front(), "' is ", to_text(data.kind()), "; give other data");
  require_ids_of(data, config.model.vocabulary);
  if (data.unlabelled && !predicts)
    fail(Fault::Data, "'", config.test_data.front(), "' has no labels to ",
         "score; give data with labels, or use tessera predict");
  const std::unique_ptr<Samples> samples = task.valid_samples(data, test_choices(config));
  for (const std::string& notice :
       {data.notice, notice_of_unknown_tokens(data), samples->notice()}) {
    if (!notice.empty()) out.notices.push_back(notice);
  }
  return task;
}

/// Columns of the data beside what is predicted.
OtherColumns columns_of(const RunConfig& config) {
  const std::vector<std::string> texts = text_columns(config);
  if (texts.empty()) return {};
  std::vector<std::string> read = texts;
  if (!config.target_column.empty()) std::erase(read, config.target_column);
  OtherColumns out = read_other_columns(config.test_data.front(), read, options_of(config));
  for (std::size_t i = 0; i < out.names.size(); ++i) {
    if (out.names[i] != config.target_column) continue;
    out.names.erase(out.names.begin() + static_cast<std::ptrdiff_t>(i));
    for (auto& row : out.rows) row.erase(row.begin() + static_cast<std::ptrdiff_t>(i));
    break;
  }
  return out;
}

/// Pictures in files of their own are known by these.
void name_pictures(Evaluation& evaluation) {
  const Pictures* const pictures = evaluation.data->pictures();
  if (pictures == nullptr) return;
  for (std::string& file : pictures->valid.set->files())
    evaluation.columns.rows.push_back({std::move(file)});
  if (!evaluation.columns.rows.empty()) evaluation.columns.names = {"file"};
}

/// What is predicted has names that no column of the rows has.
void require_own_names(const Evaluation& evaluation, std::span<const std::string> predicted,
                       std::span<const std::string_view> left_out) {
  const std::vector<std::string>& others = evaluation.columns.names;
  for (const std::string& name : predicted) {
    if (std::ranges::find(left_out, name) == left_out.end() &&
        std::ranges::find(others, name) != others.end())
      fail(Fault::Data, "'", evaluation.config.test_data.front(), "' has a column ",
           column_names_text({&name, 1}), ", which is the name of predictions; rename it");
  }
}

/// Labels of a table's rows are among its columns; answers are texts.
std::span<const std::string_view> judged_but_not_wanted(const Evaluation& evaluation) {
  static constexpr std::string_view kNumberAndLabel[] = {"row", "label"};
  const bool of_words_or_pictures =
      !is_of_tables(evaluation.config.model) && evaluation.data->questions() == nullptr;
  return std::span(kNumberAndLabel).first(of_words_or_pictures ? 1 : 2);
}

/// `predicted`, of which the columns in `left_out` are no more wanted, behind those of the rows.
PredictionTable beside(const Evaluation& evaluation, const PredictionTable& predicted,
                       std::span<const std::string_view> left_out) {
  const OtherColumns& others = evaluation.columns;
  check(others.names.empty() || others.rows.size() == predicted.rows.size(), "predictions of ",
        predicted.rows.size(), " rows of ", others.rows.size());
  require_own_names(evaluation, predicted.columns, left_out);
  PredictionTable out{others.names, others.rows};
  out.rows.resize(predicted.rows.size());
  for (std::size_t k = 0; k < predicted.columns.size(); ++k) {
    const std::string& name = predicted.columns[k];
    if (std::ranges::find(left_out, name) != left_out.end()) continue;
    out.columns.push_back(name);
    for (std::size_t row = 0; row < out.rows.size(); ++row)
      out.rows[row].push_back(predicted.rows[row][k]);
  }
  return out;
}

PredictionTable written_texts(RankGroup& group, const Evaluation& evaluation, const Task& task) {
  TextModel model(group, *task.text);
  const std::vector<Beginning> beginnings = beginnings_of(
      evaluation.sources, *task.text, evaluation.vocabulary, evaluation.config.model.vocabulary);
  PredictionTable out{{kPrediction}, {}};
  write_texts(model, evaluation.vocabulary, beginnings,
              {.tokens = task.text->context, .temperature = 0}, {},
              [&](const std::string& written) { out.rows.push_back({written}); });
  return out;
}

}  // namespace

Evaluation open_pretrained(const std::string& path, const RunConfig& asked) {
  Evaluation out{.config = asked};
  out.pretrained.emplace(PretrainedModel::open(path));
  take_model(out.config, *out.pretrained);
  complete(out.config);
  out.vocabulary = vocabulary_at(out.config, path);
  require_same_padding(*out.pretrained, out.vocabulary);
  require_padding(*out.pretrained, out.vocabulary);
  out.notices = out.pretrained->notices();
  return out;
}

std::vector<std::string_view> evaluation_fields() {
  return {std::begin(kDataFields), std::end(kDataFields)};
}

RunConfig on_devices_of(const RunConfig& config, const RunConfig& asked) {
  RunConfig out = config;
  out.dump_dir.clear();
  out.parallel = {.machine = asked.parallel.machine};
  take_fields(out, asked, kDeviceFields, /*given_alone=*/false);
  out.choices = asked.choices;
  return out;
}

RunConfig on_devices_of(const RunConfig& config, const RunConfig& asked, std::int64_t batch) {
  RunConfig out = on_devices_of(config, asked);
  const std::int64_t data = std::max<std::int64_t>(out.parallel.data(), 1);
  out.micro_batch_size = (batch + data - 1) / data;
  out.global_batch_size = out.micro_batch_size * data;
  return out;
}

Evaluation prepare_evaluation(const std::string& path, const RunConfig& asked, std::int64_t batch,
                              bool predicts) {
  std::vector<std::string> labels;
  Evaluation out = open_model(path, asked, labels);
  RunConfig& config = out.config;
  config.data = config.test_data = asked.test_data;
  config.valid_data.clear();
  config.bucket_lengths.clear();
  config.epochs = 0;
  take_data_format(config, asked);
  if (out.pretrained) {
    find_dialogues(config);
    find_columns(config, /*may_lack_labels=*/true);
  }
  config = on_devices_of(config, asked, batch);
  Problems problems;
  problems.add(tessera::problems(config.parallel, config.model));
  problems.raise();
  const Task task = task_of(config.model);
  if (predicts) out.columns = columns_of(config);
  if (predicts && writes_texts(task)) {
    require_own_names(out, std::array<std::string, 1>{kPrediction}, {});
    if (out.pretrained)
      for (const std::string& notice : out.pretrained->notices_of_writing())
        out.notices.push_back(notice);
    out.sources = texts_to_write_from(config);
    beginnings_of(out.sources, *task.text, out.vocabulary, config.model.vocabulary);
    return out;
  }
  require(!predicts || task.judge != nullptr, "'", path, "' is a model of family ",
          config.model.family, " and task ", family_task(config.model).name,
          ", which predicts no labels; use tessera evaluate",
          task.text ? ", or tessera sample to write texts" : "");
  leave_length_open(config.model);
  const Task of_data = load_evaluated(out, std::move(labels), predicts);
  if (predicts) name_pictures(out);
  if (predicts) {
    const std::unique_ptr<Judge> judge = of_data.judge(*out.data);
    judge->keep_probabilities();
    require_own_names(out, judge->table().columns, judged_but_not_wanted(out));
  }
  return out;
}

void load_weights(RankGroup& group, const Evaluation& evaluation) {
  const std::string lacking = evaluation.checkpoint ? group.load_weights(*evaluation.checkpoint)
                                                    : group.load_weights(*evaluation.pretrained);
  if (!lacking.empty() || (evaluation.pretrained && evaluation.pretrained->parameters().empty()))
    fail(Fault::Checkpoint, lacking.empty() ? "the folder has no weights" : lacking,
         ": an untrained model predicts nothing; give one trained for the task");
}

Evaluated evaluate(RankGroup& group, const RunSetup& setup, const Evaluation& evaluation) {
  const Task& task = setup.task();
  const Dataset& data = *evaluation.data;
  const std::unique_ptr<Samples> samples = task.valid_samples(data, test_choices(setup.config));
  const std::unique_ptr<Judge> judge = task.judge ? task.judge(data) : nullptr;
  Validation measured(task.means, judge.get());
  MeasuredRuns runs(group);
  measure_samples(runs, *samples, setup.evaluation_batch(), measured, [] { return false; });
  const Texts* const texts = data.find_texts();
  const std::int64_t unscored =
      texts == nullptr ? 0 : std::ranges::count_if(texts->labels, &RowLabel::none);
  return {samples->size() - unscored, measured.loss(), scores_of(task, measured, judge.get())};
}

PredictionTable predict(RankGroup& group, const RunSetup& setup, const Evaluation& evaluation) {
  const Task& task = setup.task();
  if (!evaluation.data) return beside(evaluation, written_texts(group, evaluation, task), {});
  const Dataset& data = *evaluation.data;
  const std::unique_ptr<Samples> samples = task.valid_samples(data, test_choices(setup.config));
  const std::unique_ptr<Judge> judge = task.judge(data);
  judge->keep_probabilities();
  Validation measured(task.means, judge.get());
  MeasuredRuns runs(group);
  measure_samples(runs, *samples, setup.evaluation_batch(), measured, [] { return false; });
  return beside(evaluation, judge->table(), judged_but_not_wanted(evaluation));
}

}  // namespace tessera
