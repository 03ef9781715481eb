#include "tessera/train/prepare.h"

#include <algorithm>

#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint_manifest.h"
#include "tessera/config/fields.h"
#include "tessera/config/output_folder.h"
#include "tessera/config/own_file.h"
#include "tessera/config/recorded.h"
#include "tessera/data/dataset.h"
#include "tessera/models/family.h"
#include "tessera/models/parameter_shapes.h"
#include "tessera/sources/dialogue_data.h"
#include "tessera/sources/row_data.h"
#include "tessera/sources/sample_choices.h"
#include "tessera/sources/stream_data.h"
#include "tessera/sources/token_data.h"
#include "tessera/token_files/token_files.h"
#include "tessera/train/adapter_base.h"
#include "tessera/train/compare_runs.h"
#include "tessera/train/pretrained_start.h"
#include "tessera/train/programs.h"
#include "tessera/train/run_data.h"
#include "tessera/train/run_source.h"
#include "tessera/train/task_start.h"

namespace tessera {

namespace {

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

/// A run that is being prepared: each step leaves to those behind it what it has found.
class Preparation {
 public:
  Preparation(RunConfig config, Problems& problems)
      : config_(std::move(config)), problems_(problems) {}

  void look_into_output();
  void open_beginning();
  void complete_fields();
  void check_files(OtherRun other);
  void read_data();
  void add_notices_of_fields();
  void compare_with_checkpoint();
  bool has_data() const { return data_.has_value(); }
  void take_sizes_of_data();
  void count_epochs();
  void choose_place_of_base();
  void gather();
  void take_folder();
  void check_samples();
  void take_init();
  void take_test();
  std::optional<PreparedRun> prepared();

 private:
  const std::optional<Source>& base() const { return from_ ? from_ : init_; }
  template <typename Weights>
  void begin_head_anew(const ModelConfig& model, const std::string& path, const Weights& weights) {
    run_->anew =
        head_to_begin_anew(run_->config, *run_->data,
                           {model, known_.labels, path, parameter_names(weights)}, run_->notices);
  }

  /// What the weights at `path` lack begins at random, and must be trained then.
  template <typename Weights>
  void require_all_frozen(const std::string& path, const Weights& weights) {
    const OptimizerConfig& optimizer = run_->config.optimizer;
    if (optimizer.frozen.empty() && optimizer.trained.empty()) return;
    const std::vector<std::string> there = parameter_names(weights);
    std::vector<std::string> lacking;
    for (const auto& [name, shape] : parameter_shapes(run_->config.model))
      if (!trains(optimizer, name) && std::ranges::find(there, name) == there.end())
        lacking.push_back(name);
    if (!there.empty() && !lacking.empty())
      problems_.add(text("'", path, "' lacks ", join(lacking),
                         ", which would begin at random and stay so, as ",
                         run_->config.model.lora.rank > 0 ? "lora-rank" : "freeze",
                         " leaves them untrained; begin with a model that has them"),
                    Fault::Checkpoint);
  }

  void add_notice(const std::string& notice) {
    if (!notice.empty()) run_->notices.push_back(notice);
  }

  RunConfig config_, given_;
  Problems& problems_;
  std::vector<std::string> notices_, held_;
  std::optional<Source> from_, init_;  // where it goes on; whose weights it begins with
  std::optional<PretrainedModel> pretrained_;
  KnownModel known_;
  std::optional<Dataset> data_;
  std::optional<Task> task_;  // none: what is wrong with the model is reported
  Problems of_data_;
  std::string ids_;
  std::optional<PreparedRun> run_;  // from gather() on
};

void Preparation::look_into_output() {
  problems_.gather([&] { held_ = what_output_holds(config_.output); });
}

/// The checkpoint that it goes on from or begins with, or a folder of Hugging Face's.
void Preparation::open_beginning() {
  if (std::optional<Source> found = find_source(config_, problems_, notices_))
    from_.emplace(std::move(*found));
  if (!from_ && !config_.init_from.empty())
    problems_.gather_first([&] {
      if (is_hub_folder(config_)) {
        pretrained_.emplace(open_pretrained(config_, OpenPretrained::Weights::Read));
        take_model(config_, *pretrained_);
      } else {
        init_.emplace(open_init(config_));
      }
    });
  if (base()) problems_.gather([&] { take_model(config_, base()->run); });
  if (from_) take_f32_products(config_, from_->run.config);
  if (!from_) leave_open_to_rows(config_, init_.has_value());
}

void Preparation::complete_fields() {
  find_dialogues(config_);
  given_ = config_;
  complete(config_);
  problems_.gather([&] { find_columns(config_); });
  find_stream_column(config_);
  find_problems(config_, problems_);
}

/// Those that the run will write.
void Preparation::check_files(OtherRun other) {
  check_output(config_, other, problems_);
  if (const std::string replaced = notice_of_replaced_run(config_, other); !replaced.empty())
    notices_.push_back(replaced);
  check_replaces_own("profile", config_.profile, OwnFile::Profile, problems_);
  check_offload_folder(config_, problems_);
}

void Preparation::read_data() {
  if (base())
    check_tokenizer(config_, base()->run.vocabulary, base()->checkpoint.path(), problems_);
  // Other data is to be told as such, not as another model, nor as characters that are not known.
  if (base() && config_.model.vocabulary == 0)
    config_.model.vocabulary = base()->run.config.model.vocabulary;
  if (from_) tessera::take_sizes_of_data(config_, from_->run.config.model);
  known_.keeps_labels = from_.has_value();
  if (base()) {
    known_.vocabulary = &base()->run.vocabulary;
    known_.checkpoint = base()->checkpoint.path();
    known_.labels = base()->run.labels;
  }
  if (pretrained_) known_.labels = pretrained_->labels();
  data_ = load_data(config_, known_, of_data_);
  if (data_ && data_->vocabulary.made_elsewhere() != nullptr) {
    for (const std::string& notice : data_->vocabulary.made_elsewhere()->notices())
      notices_.push_back(notice);
  }
  problems_.gather([&] {
    if (data_) data_source(config_).settle(config_, *data_);
  });
  if (const std::string unread = data_ ? notice_of_other_kinds(config_) : ""; !unread.empty())
    notices_.push_back(unread);
}

void Preparation::add_notices_of_fields() {
  const Isa isa = config_.choices.value_or(machine_choices()).isa;
  const std::optional<Precision> precision = precision_of(config_);
  if (precision && plugin_of(config_).empty() && !multiplies_16_bit(precision->compute, isa))
    notices_.push_back(
        text("kernels of instruction set ", to_text(isa), " cannot multiply ", precision->compute,
             ", and convert it to f32 and back, so products are not faster than in f32"));
  add_notice_of_unread_scale(config_, notices_);
  note_idle_parallelism(config_, notices_);
}

/// What the run has otherwise than the checkpoint that it goes on from, its data above all: where
/// that is other data, what is wrong with it is not told.
void Preparation::compare_with_checkpoint() {
  const std::string digest = data_   ? data_->digest
                             : from_ ? digest_of(config_, from_->run.vocabulary.kind())
                                     : "";
  ids_ = data_ ? ids_digest(*data_) : "";
  const DataDigests digests = {digest, data_ ? data_->held_out_digest : "", ids_};
  if (from_)
    compare_run(config_, from_->run, from_->checkpoint.path(), digests, notices_, problems_);
  const bool other_data = from_ && !digest.empty() && digest != from_->run.data;
  if (!other_data || config_.allow_changes) {
    for (const Error& problem : of_data_.list()) problems_.add(problem, {"data"});
  }
}

void Preparation::take_sizes_of_data() {
  if (const std::string repeated = repeated_ranks_text(config_.parallel); !repeated.empty())
    notices_.push_back(repeated);
  const bool was_open = complete_model(config_, *data_);
  const FieldProblems of_model = tessera::problems(config_.model);
  if (was_open) problems_.add(of_model);
  if (of_model.empty()) task_.emplace(task_of(config_.model));
}

/// The steps of a run that counts epochs.
void Preparation::count_epochs() {
  if (!task_) return;
  if (config_.epochs > 0)
    problems_.gather([&] {
      const TokenFiles* const files = data_->token_files();
      if (files != nullptr && !task_->token_files) return;  // reported below
      const std::int64_t in_epoch =
          files != nullptr ? task_->token_files->samples_in_epoch(*files, sample_choices(config_))
                           : task_->train_samples(*data_, sample_choices(config_))->size();
      complete_epochs(config_, given_, in_epoch);
      if (from_) compare_epochs(config_, from_->run, notices_);
    });
  if (from_ && data_->token_files() != nullptr)
    problems_.gather(
        [&] { compare_token_order(config_, from_->run.config, *task_, *data_, notices_); });
}

/// Where the base of adapters is in no folder of weights, every checkpoint holds it: that of a
/// checkpoint, which a run may remove, and that of a run whose checkpoints did so far.
void Preparation::choose_place_of_base() {
  if (config_.model.lora.rank == 0) return;
  if (from_ && !from_->checkpoint.base_path().empty()) {
    config_.init_from = from_->checkpoint.base_path();
  } else {
    config_.save_base = config_.save_base || !pretrained_;
    if (pretrained_ && pretrained_->parameters().empty()) config_.init_from_config = true;
  }
}

/// What was found becomes the prepared run; the checkpoint or folder that it begins with follows.
void Preparation::gather() {
  run_.emplace(PreparedRun{.config = std::move(config_),
                           .given = std::move(given_),
                           .task = task_ ? std::move(*task_) : Task(),
                           .data = std::make_shared<const Dataset>(std::move(*data_)),
                           .ids = ids_,
                           .notices = std::move(notices_),
                           .output_held = std::move(held_)});
  run_->hub_config = pretrained_ ? pretrained_->json()
                     : base()    ? recorded_hub_config(base()->checkpoint)
                                 : "";
}

/// The folder of Hugging Face's against the run.
void Preparation::take_folder() {
  if (!pretrained_) return;
  for (const std::string& notice : pretrained_->notices()) run_->notices.push_back(notice);
  if (pretrained_->parameters().empty())
    run_->notices.push_back(text("of '", pretrained_->path(), "' only config.json is read: all ",
                                 "weights are initialized at random"));
  add_notice(notice_of_unknown_rows(*pretrained_, run_->data->vocabulary));
  add_notice(notice_of_other_tokens(run_->config, *pretrained_));
  if (!pretrained_->parameters().empty())
    add_notice(notice_of_unread_first_value(run_->config, pretrained_->path()));
  compare_model(run_->config, *pretrained_, problems_);
  if (has_head(run_->config.model, TaskHead::SequenceClassification))
    problems_.gather([&] { require_same_padding(*pretrained_, run_->data->vocabulary); });
  begin_head_anew(pretrained_->config(), pretrained_->path(), *pretrained_);
  problems_.gather([&] { require_all_frozen(pretrained_->path(), *pretrained_); });
  if (problems_.empty())
    problems_.gather([&] { pretrained_->check_shapes(run_->config.model, run_->anew); });
  run_->pretrained = std::move(pretrained_);
}

void Preparation::check_samples() {
  if (from_)
    problems_.gather([&] {
      add_notice(go_on_in_stream(*run_->data, run_->config, from_->run, from_->checkpoint));
    });
  if (from_ && leaves_base_out(run_->config)) run_->base = record_of_base(from_->checkpoint);
  if (from_) run_->from.emplace(std::move(from_->checkpoint));
  if (init_) run_->init.emplace(std::move(init_->checkpoint));
  check_data(*run_, problems_);
}

/// The checkpoint whose weights it begins with against the run.
void Preparation::take_init() {
  if (!init_ && !from_ && !pretrained_ && !run_->pretrained && run_->config.model.lora.rank > 0)
    add_notice("adapters are trained on weights that begin at random; give --init-from");
  if (!init_) return;
  add_notice(notice_of_unread_first_value(run_->config, run_->init->path()));
  compare_model(run_->config, init_->run, run_->init->path(), problems_);
  begin_head_anew(init_->run.config.model, run_->init->path(), *run_->init);
  problems_.gather([&] { require_all_frozen(run_->init->path(), *run_->init); });
}

void Preparation::take_test() {
  if (!problems_.empty()) return;
  check_ids_and_take_test(*run_, problems_);
}

std::optional<PreparedRun> Preparation::prepared() {
  if (problems_.empty())
    problems_.gather([&] { require_room_for_tensors(checkpoint_record(*run_, 0, 0)); });
  if (!problems_.empty()) return {};
  return std::move(run_);
}

}  // namespace

std::optional<PreparedRun> prepare_run(RunConfig config, Problems& problems, OtherRun other) {
  Preparation run(std::move(config), problems);
  run.look_into_output();
  run.open_beginning();
  run.complete_fields();
  run.check_files(other);
  run.read_data();
  run.add_notices_of_fields();
  run.compare_with_checkpoint();
  if (!run.has_data()) return {};
  run.take_sizes_of_data();
  run.count_epochs();
  run.choose_place_of_base();
  run.gather();
  run.take_folder();
  run.check_samples();
  run.take_init();
  run.take_test();
  return run.prepared();
}

}  // namespace tessera
