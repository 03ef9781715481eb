#pragma once
/// A trained model that a program calls: with batches of any size, for texts, for its parameters.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tessera/apps/flags.h"
#include "tessera/checkpoint/checkpoint.h"
#include "tessera/config/config.h"
#include "tessera/config/problems.h"
#include "tessera/pretrained/pretrained_model.h"
#include "tessera/pretrained/save_pretrained.h"
#include "tessera/tokenizers/vocabulary.h"
#include "tessera/user_code/call_inputs.h"
#include "tessera/user_code/led_ranks.h"

namespace tessera {

struct AskedModel {
  RunConfig config;  // init_from: a run, a checkpoint, a folder of Hugging Face; empty: a new model
  Problems problems = {};
  std::vector<std::string> notices = {};
};
/// The flags of a model: what it is, where it computes, in which floats, its tokenizer.
std::vector<Flag> model_flags();
AskedModel read_model_flags(const Arguments& arguments, const OwnFamilies& families = {});

class CalledModel {
 public:
  /// Opens the model: files are read, nothing is compiled. Where the task is not that of the
  /// weights, or has other classes, its head is new. Without init_from all of it is new, and
  /// vocab-size is told.
  /// Errors: as of take_init_model, open_init and PretrainedModel::open; fields that do not fit.
  explicit CalledModel(AskedModel asked);

  const RunConfig& config() const { return config_; }  // complete
  /// What a user should know of the model; grows with what is loaded first.
  const std::vector<std::string>& notices() const { return notices_; }
  const std::vector<std::string>& labels() const { return labels_; }
  /// Whether it came from a folder of Hugging Face.
  bool is_of_hub() const { return pretrained_.has_value(); }
  /// nullptr: it has no tokenizer.
  const Vocabulary* vocabulary() const { return vocabulary_ ? &*vocabulary_ : nullptr; }

  /// transformers' model(**inputs), without dropout: the logits under its names there, [batch, ...]
  /// of f32, and, with labels, "loss", a scalar. A program for the sizes of the call is compiled,
  /// and kept: sizes are rounded up, and what that adds counts nowhere. May be called by several
  /// threads, which wait for each other.
  /// Errors: as of CallInputs; of compiling and running.
  NamedTensors call(const NamedTensors& inputs);

  /// All parameters, whole, f32: by our names, or by those of the model's class in transformers.
  /// Errors: Fault::Usage: transformers has no such class.
  NamedTensors parameters(bool names_of_hub);
  /// Whether transformers has a class of the model, so that it can be saved and named as there.
  bool has_hub_names() const;
  /// As save_pretrained, with labels and the tokenizer of the model. Returns what it leaves out.
  std::vector<std::string> save_pretrained(const std::string& folder, SavePretrained how);

  /// Runs `work` on devices with the programs that write so many texts at a time with `model`: this
  /// one, at another context.
  void write(const ModelConfig& model, std::int64_t texts,
             const std::function<void(RankGroup& group)>& work);

 private:
  /// Devices that have compiled programs for one kind of work.
  struct Ready {
    std::string key;
    std::unique_ptr<LedRanks> ranks;
  };
  void take_weights(Problems& problems);
  void load(RankGroup& group);
  LedRanks& ready(const std::string& key, const RunConfig& config,
                  const std::function<LedRanks::Compile()>& compile);
  LedRanks& ready_for(const CallInputs& inputs);
  RunConfig at_rows(RunConfig config, std::int64_t rows) const;
  /// `exact`: as many tokens as were given.
  CallSizes program_sizes(const CallSizes& sizes, bool exact = false) const;
  void run_on(LedRanks& ranks, const std::function<void(RankGroup& group)>& work);
  void with_parameters(const std::function<void(const ParameterReader& parameters)>& read);

  RunConfig config_;
  std::vector<std::string> notices_, labels_;
  std::optional<Vocabulary> vocabulary_;
  std::optional<Checkpoint> checkpoint_;  // one of these has the weights
  std::optional<PretrainedModel> pretrained_;
  std::string anew_, hub_config_;
  std::mutex calling_;
  std::vector<Ready> ready_;  // the last used is the last
};

}  // namespace tessera
