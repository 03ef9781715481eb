#include "tessera/train/prepare.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/data/question_rows.h"
#include "tessera/data/token_stream.h"
#include "tessera/models/family.h"
#include "tessera/train/checkpoint_manifest.h"
#include "tessera/train/compare_runs.h"
#include "tessera/train/fields.h"
#include "tessera/train/output_check.h"
#include "tessera/train/output_folder.h"
#include "tessera/train/picture_data.h"
#include "tessera/train/pretrained_start.h"
#include "tessera/train/program_data.h"
#include "tessera/train/programs.h"
#include "tessera/train/recorded.h"
#include "tessera/train/row_data.h"
#include "tessera/train/task_start.h"
#include "tessera/train/token_data.h"

namespace tessera {

namespace {

/// A checkpoint to go on from, and what it records.
struct Source {
  Checkpoint checkpoint;
  RecordedRun run;
};

std::vector<std::string> parameters_of(const PretrainedModel& model) {
  std::vector<std::string> out;
  for (const auto& [name, shape] : model.parameters()) out.push_back(name);
  return out;
}
std::vector<std::string> parameters_of(const Checkpoint& checkpoint) {
  std::vector<std::string> out;
  for (const TensorEntry& entry : checkpoint.tensors()) out.push_back(entry.name);
  return out;
}

/// Every byte of it is read before anything is compiled.
Source open_source(const std::string& path, const char* words, const OwnFamilies& families,
                   RecordedUse use) {
  return naming_intact(path, words, recorded_run_judge(families, use), [&] {
    Checkpoint checkpoint = Checkpoint::open(path);
    require_intact(checkpoint);
    RecordedRun run = recorded_run(checkpoint, families, use);
    return Source{std::move(checkpoint), std::move(run)};
  });
}

Source open_init(const RunConfig& config) {
  try {
    return open_source(config.init_from, "--init-from", config.families, RecordedUse::Weights);
  } catch (const Error& failure) {
    throw with_download_hint(failure, config.init_from);
  }
}

std::optional<Source> find_source(const RunConfig& config, Problems& problems,
                                  std::vector<std::string>& notices) {
  std::optional<Source> out;
  if (config.resume == "none") return out;
  problems.gather([&] {
    std::optional<std::string> path = config.resume;
    if (config.resume == "auto")
      path = latest_checkpoint(checkpoints_folder(config), &notices,
                               recorded_run_judge(config.families));
    if (!path) return refuse_other_names(config);
    out.emplace(open_source(*path, "--resume", config.families, RecordedUse::Training));
  });
  return out;
}

/// The model is that of the checkpoint but for what the user told.
void take_model(RunConfig& config, const RecordedRun& from) {
  for (const Field& field : fields()) {
    if (field.group != FieldGroup::Model && field.on_resume != OnResume::Model) continue;
    if (config.untold.contains(field.name))
      set_text(field, config, get_text(field, from.config), field.name);
  }
  // Follow from the packing of its documents.
  if (from.config.packing == to_text(Packing::Bfd)) {
    if (config.untold.contains("reset-position-ids")) config.model.reset_positions = false;
    if (config.untold.contains("reset-attention-mask")) config.model.reset_attention = false;
  }
  if (config.vocabulary == VocabularyKind::Tokenizer && tokenizer_choice(config).none()) {
    config.tokenizer = from.config.tokenizer;
    config.tokenizer_type = from.config.tokenizer_type;
    config.vocab_file = from.config.vocab_file;
    config.merge_file = from.config.merge_file;
    config.vocab_extra_ids = from.config.vocab_extra_ids;
  }
  // As many as the data had: stays open in config.toml.
  if (config.untold.contains("vocab-size") && from.vocabulary.kind() != VocabularyKind::Bpe &&
      from.config.model.vocabulary == vocabulary_for(from.config.model.family, from.vocabulary))
    config.model.vocabulary = 0;
  // A preset leaves the size open; that of learned tokens is not to be found in the data.
  if (config.model.vocabulary == 0 && from.vocabulary.kind() == VocabularyKind::Bpe)
    config.model.vocabulary = from.config.model.vocabulary;
}

/// The data in the ids that weights were trained on: those of `base`, if there is one.
Dataset encoded_for(const RunConfig& config, const std::optional<Source>& base,
                    const KnownLabels& labels) {
  const double held_out = config.valid_data.empty() ? config.held_out : 0;
  const bool rows = trains_on_rows(config);
  if (!base)
    return rows ? load_row_data(config, labels)
                : load_dataset(config.data, vocabulary_choice(config), held_out);
  try {
    if (rows) return load_row_data(config, labels, &base->run.vocabulary);
    return load_dataset(config.data, base->run.vocabulary, held_out);
  } catch (const Error& error) {
    throw error.with(text("in the vocabulary of checkpoint '", base->checkpoint.path(),
                          "', whose weights know no other tokens"));
  }
}

std::optional<Dataset> load_data(const RunConfig& config, const std::optional<Source>& base,
                                 const KnownLabels& labels, Problems& problems) {
  std::optional<Dataset> out;
  if (!config.program_data.empty()) {
    problems.gather(
        [&] { out = load_program_data(config, base ? &base->run.vocabulary : nullptr); });
    return out;
  }
  if (config.data.empty()) {
    problems.add("data is missing; give a text file, like --data input.txt", Fault::Usage);
    return out;
  }
  // Reported before.
  if (!base && config.vocabulary == VocabularyKind::Tokenizer && tokenizer_choice(config).none())
    return out;
  if (is_of_tables(config.model) && config.label_column.empty()) return out;  // reported before
  problems.gather([&] {
    if (trains_on_rows(config)) {
      out = encoded_for(config, base, labels);
      return;
    }
    if (trains_on_token_files(config)) {
      out = load_token_files(config, base ? &base->run.vocabulary : nullptr);
      return;
    }
    if (trains_on_pictures(config)) {
      out = load_pictures(config);
      return;
    }
    refuse_fields_of_token_files(config);
    Dataset data = encoded_for(config, base, labels);
    if (!config.valid_data.empty()) hold_out(data, config.valid_data);
    out = std::move(data);
  });
  return out;
}

/// Weights know the tokens that they were trained on: another tokenizer is refused. One that is no
/// longer where it was does no harm, because the checkpoint has its files.
void check_tokenizer(const RunConfig& config, const Source& base, Problems& problems) {
  const Tokenizer* const recorded = base.run.vocabulary.made_elsewhere();
  const TokenizerChoice choice = tokenizer_choice(config);
  if (choice.none() || (recorded != nullptr && !is_there(choice))) return;
  problems.gather([&] {
    if (recorded != nullptr && load_tokenizer(choice).files() == recorded->files()) return;
    fail(Fault::Checkpoint, "tokenizer '", name_of(choice), "' is not that of checkpoint '",
         base.checkpoint.path(), "', whose weights know ",
         recorded == nullptr ? text("the vocabulary ", to_text(base.run.vocabulary.kind()))
                             : std::string("other files"),
         "; leave the tokenizer out: the checkpoint has its own");
  });
}

/// The digest of a text that cannot be encoded; empty where it cannot even be read.
std::string digest_of(const RunConfig& config, const Source& from) {
  try {
    if (trains_on_rows(config)) return row_digest(config);
    if (trains_on_token_files(config) || trains_on_pictures(config)) return "";
    return text_digest(config.data, from.run.vocabulary.kind());
  } catch (const Error&) {  // reported before
    return "";
  }
}

void check_data(PreparedRun& run, Problems& problems) {
  const RunConfig& c = run.config;
  if (!tessera::problems(c.model).empty()) return;  // reported before
  Problems of_buckets;
  if (!of_buckets.gather([&] { bucket_lengths(c); })) return;  // reported before
  const Task task = task_of(c.model);
  const std::vector<DataKind> taken = data_taken(task);
  if (std::ranges::find(taken, run.data.kind()) == taken.end()) {
    std::vector<std::string> known;
    for (const DataKind kind : taken) known.emplace_back(to_text(kind));
    problems.add(text("family ", c.model.family, " trains on ", join(known, " or "), ", and data '",
                      c.data.front(), "' is ", to_text(run.data.kind()),
                      "; give another family, or other data"),
                 {"family", "data"});
    return;
  }
  if (!rows_fit(run.data, c, task, problems)) return;
  if (!run.data.rows.notice.empty()) run.notices.push_back(run.data.rows.notice);
  const auto look_at = [&](const Samples& samples) {
    if (!samples.notice().empty()) run.notices.push_back(samples.notice());
  };
  std::string of_training;
  problems.gather([&] {
    try {
      look_at(*task.train_samples(run.data, sample_choices(c)));
    } catch (const Error& error) {
      of_training = error.what();
      throw;
    }
  });
  if (wanted_programs(c).evaluate)
    problems.gather(
        [&] {
          try {
            look_at(*task.valid_samples(run.data, valid_choices(c)));
          } catch (const Error& error) {
            if (!c.valid_data.empty() || of_training == error.what()) throw;
            if (run.data.token_files)
              throw error.with(
                  "with split 1,0,0 nothing is validated on, and valid-data names "
                  "token files to validate on");
            throw error.with(text("held-out is ", c.held_out,
                                  "; 0 holds nothing out, and valid-data validates on a text of "
                                  "its own"));
          }
        },
        {"held-out"});
  const std::int64_t known = run.data.vocabulary.size(),
                     least = vocabulary_for(c.model.family, run.data.vocabulary);
  const bool learned = c.vocabulary == VocabularyKind::Bpe && !run.from && !run.init;
  if (learned && c.model.vocabulary > least)
    run.notices.push_back(
        text("the vocabulary has ", known, " tokens and not ", c.model.vocabulary - (least - known),
             ", because no more pairs of tokens are twice in the text; vocab-size ", least,
             " is the same model without rows that no token uses"));
  // A resumed run keeps its vocabulary; of a learned one find_problems has told.
  const bool told = c.vocabulary == VocabularyKind::Bpe &&
                    c.model.vocabulary < vocabulary_for(c.model.family, Bpe::kBytes);
  const VocabularyKind kind = run.data.vocabulary.kind();
  if (!run.from && !told && c.model.vocabulary < least)
    problems.add(text(
        "vocab-size ", c.model.vocabulary, " is less than the ", known, " ",
        kind == VocabularyKind::Bpe || kind == VocabularyKind::Tokenizer ? "tokens" : to_text(kind),
        kind == VocabularyKind::Tokenizer ? " of the tokenizer" : " of the data",
        least > known
            ? text(" and the ", least - known, " special tokens of family ", c.model.family)
            : "",
        "; give 0 or at least ", least));
}

/// Numbers of the loss scale, of a run that has none.
void add_notice_of_unread_scale(const RunConfig& config, std::vector<std::string>& notices) {
  if (config.fp16) return;
  const LossScaleConfig &scale = config.optimizer.loss_scale, usual;
  std::vector<std::string> unread;
  if (scale.initial != usual.initial) unread.emplace_back("initial-loss-scale");
  if (scale.least != usual.least) unread.emplace_back("min-loss-scale");
  if (scale.window != usual.window) unread.emplace_back("loss-scale-window");
  if (scale.hysteresis != usual.hysteresis) unread.emplace_back("hysteresis");
  if (!unread.empty())
    notices.push_back(
        text(join(unread), unread.size() == 1 ? " does" : " do", " nothing without fp16"));
}

}  // namespace

std::optional<PreparedRun> prepare_run(RunConfig config, Problems& problems) {
  std::vector<std::string> notices, held;
  problems.gather([&] { held = what_output_holds(config.output); });
  std::optional<Source> from = find_source(config, problems, notices), init;
  std::optional<PretrainedModel> pretrained;
  if (!from && !config.init_from.empty())
    problems.gather_first([&] {
      if (PretrainedModel::is_at(config.init_from)) {
        pretrained.emplace(PretrainedModel::open(config.init_from));
        take_model(config, *pretrained);
      } else {
        init.emplace(open_init(config));
      }
    });
  const std::optional<Source>& base = from ? from : init;
  if (base) problems.gather([&] { take_model(config, base->run); });
  if (!from) leave_open_to_rows(config, init.has_value());
  RunConfig told = config;
  complete(config);
  problems.gather([&] { find_columns(config); });
  find_problems(config, problems);
  check_output(config, problems);
  check_offload_folder(config, problems);
  if (base) check_tokenizer(config, *base, problems);
  // Other data is to be told as such, not as another model, nor as characters that are not known.
  if (base && config.model.vocabulary == 0)
    config.model.vocabulary = base->run.config.model.vocabulary;
  if (from) take_sizes_of_data(config, from->run.config.model);
  Problems of_data;
  KnownLabels labels{base ? base->run.labels : std::vector<std::string>(), from.has_value()};
  if (pretrained) labels.names = pretrained->labels();
  std::optional<Dataset> data = load_data(config, base, labels, of_data);
  if (data && data->vocabulary.made_elsewhere() != nullptr) {
    for (const std::string& notice : data->vocabulary.made_elsewhere()->notices())
      notices.push_back(notice);
  }
  problems.gather([&] {
    if (!data || !data->token_files) return;
    config.eod_token = eod_token_of(config, data->vocabulary);
    if (!data->token_files->has(DataPart::Valid)) config.held_out = 0;
  });
  if (const std::string unread = notice_of_unread_columns(config); !unread.empty())
    notices.push_back(unread);
  const std::string digest = data ? data->digest : from ? digest_of(config, *from) : "";
  const Isa isa = config.choices.value_or(machine_choices()).isa;
  const std::optional<Precision> precision = precision_of(config);
  if (precision && !multiplies_16_bit(precision->compute, isa))
    notices.push_back(text("kernels of instruction set ", to_text(isa), " multiply no ",
                           precision->compute,
                           ", but convert it to f32 and back, so products take "
                           "no less time than in f32"));
  add_notice_of_unread_scale(config, notices);
  if (from) compare_run(config, from->run, from->checkpoint.path(), digest, notices, problems);
  const bool other_data = from && !digest.empty() && digest != from->run.data;
  if (!other_data || config.allow_changes) {
    for (const Error& problem : of_data.list()) problems.add(problem, {"data"});
  }
  if (!data) return {};
  if (const std::string repeated = repeated_ranks_text(config.parallel); !repeated.empty())
    notices.push_back(repeated);
  take_special_tokens(config.model, data->vocabulary);
  complete_from_data(config, *data);
  const bool open = config.model.vocabulary == 0;
  if (open) config.model.vocabulary = vocabulary_for(config.model.family, data->vocabulary);
  if (open || is_of_rows(config.model)) problems.add(tessera::problems(config.model));
  if (config.epochs > 0 && tessera::problems(config.model).empty()) {
    problems.gather([&] {
      const Task task = task_of(config.model);
      if (data->token_files && !task.token_files) return;  // reported below
      const std::int64_t in_epoch =
          data->token_files
              ? task.token_files->samples_in_epoch(*data->token_files, sample_choices(config))
              : task.train_samples(*data, sample_choices(config))->size();
      complete_epochs(config, told, in_epoch);
      if (from) compare_epochs(config, from->run, notices);
    });
  }
  if (from && data->token_files && tessera::problems(config.model).empty())
    problems.gather([&] { compare_token_order(config, from->run.config, *data, notices); });
  PreparedRun run{.config = std::move(config),
                  .told = std::move(told),
                  .data = std::move(*data),
                  .notices = std::move(notices),
                  .output_held = std::move(held)};
  run.hub_config = pretrained ? pretrained->json()
                   : base     ? recorded_hub_config(base->checkpoint)
                              : "";
  if (pretrained) {
    for (const std::string& notice : pretrained->notices()) run.notices.push_back(notice);
    compare_model(run.config, *pretrained, problems);
    run.anew = head_to_begin_anew(
        run.config, run.data,
        {pretrained->config(), labels.names, pretrained->path(), parameters_of(*pretrained)},
        run.notices);
    run.pretrained = std::move(pretrained);
  }
  if (from) run.from.emplace(std::move(from->checkpoint));
  if (init) run.init.emplace(std::move(init->checkpoint));
  check_data(run, problems);
  if (init) {
    compare_model(run.config, init->run, run.init->path(), problems);
    run.anew = head_to_begin_anew(
        run.config, run.data,
        {init->run.config.model, labels.names, run.init->path(), parameters_of(*run.init)},
        run.notices);
  }
  if (problems.empty() &&
      run.data.kind() ==
          DataKind::Text) {  // a vocabulary from a checkpoint may be larger than its model's
    problems.gather([&] {
      const std::string files = name_of(run.data.files);
      require_ids(run.data.tokens.all(), run.config.model.vocabulary, files);
      if (run.data.questions)
        require_question_ids(*run.data.questions, run.config.model.vocabulary, files);
    });
  }
  if (problems.empty())
    problems.gather([&] { require_room_for_tensors(checkpoint_record(run, 0, 0)); });
  if (!problems.empty()) return {};
  return run;
}

}  // namespace tessera
