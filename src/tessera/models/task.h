#pragma once
/// A task: what a model is trained to do. Its inputs, its loss and what validation measures, its
/// data, and how it writes text, as one value. The programs of a run are made from it, and the
/// training loop knows no model but through it.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/data/buckets.h"
#include "tessera/data/data_kind.h"
#include "tessera/data/packing.h"
#include "tessera/models/judge.h"
#include "tessera/nn/loss.h"
#include "tessera/nn/transformer.h"
#include "tessera/token_files/data_split.h"
#include "tessera/token_files/sampler.h"
#include "tessera/token_files/samples.h"

namespace tessera {

struct Dataset;     // data/dataset.h
struct TokenFiles;  // token_files/token_files.h

/// One input of a batch: a tensor [batch, sample...].
struct TaskInput {
  std::string name;  // "ids"
  DType dtype = DType::I32;
  Shape sample;             // of one sample, without the batch dim
  std::int64_t values = 0;  // of integers: they are from 0 to values - 1 ...
  bool ignorable = false;   // ... or kIgnoredLabel; of f32: kIgnoredNumber
};

/// The inputs of a program, by name.
using TaskValues = std::map<std::string, Value, std::less<>>;

/// The name of the mean that is the loss, where a task has one mean alone.
inline constexpr const char* kLossMean = "loss";

/// That of the choices of experts which are dropped, where a capacity drops any.
inline constexpr const char* kDroppedMean = "dropped_fraction";

/// A mean that a task measures. The loss is the sum of all means, each times its weight.
struct TaskMean {
  std::string name;
  double weight = 1;  // 0: not a part of the loss
};

/// A value of each sample of a batch: [batch, ...].
struct NamedValue {
  std::string name;
  Value value;
};

/// A state of Role::Buffer, and what follows it behind a step that is made: called where the step
/// updates parameters.
struct BufferStep {
  Value buffer;
  std::function<Value()> next;
};

/// What a task computes of a batch of inputs.
struct Measured {
  Measured() = default;
  Measured(std::vector<Mean> of, std::vector<NamedValue> predicted = {})
      : means(std::move(of)), predictions(std::move(predicted)) {}
  std::vector<Mean> means;  // in the order of Task::means
  /// What Task::judge wants to see. Training computes none of it.
  std::vector<NamedValue> predictions;
  /// Of each of Task::routers how many choices each expert has: [experts] of f32.
  std::vector<Value> tokens_per_expert;
  std::vector<BufferStep> buffers;
};

struct SampleChoices {
  std::uint64_t seed = 0;
  SampleOrder order = SampleOrder::ShuffledWindows;
  std::int64_t most = 0;               // validation: the first so many samples; 0: all
  Packing packing = Packing::Wrapped;  // of documents of rows
  BucketOptions buckets = {};          // training: of samples that have lengths of their own
  // Of token files:
  std::int64_t in_all = 0;            // samples that the run takes; 0: those of one epoch
  std::int32_t end_of_document = -1;  // its token; -1: none
  bool mask_end_of_document = false;  // what follows it is not predicted
  bool varied = false;                // training on pictures in files: ImageSamplesOptions::varied
};

using MakeSamples =
    std::function<std::unique_ptr<Samples>(const Dataset& data, const SampleChoices& choices)>;

/// How a task writes text: a token at a time, each behind those before it.
struct TextWriting {
  std::int64_t context = 0;  // most tokens that the model sees
  /// Logits [b, s, vocabulary] of token ids [b, s]; of one token where `pass` says so.
  std::function<Value(Value ids, const Pass& pass)> logits;
  double temperature = 0.8;  // of draws, unless a user says otherwise; 0: the likeliest token

  // Of a task that writes a text from another one, its source:
  std::int64_t source = 0;  // most tokens of a source, the end token included; 0: there is none
  /// Reads token ids [b, source]: what `logits` needs of them goes into caches.
  std::function<void(Value source)> read_source = nullptr;
  std::int32_t pad = 0;  // behind the end of a source

  // Tokens that no text has:
  std::optional<std::int32_t> start = std::nullopt;  // a text begins with; none: with its prompt
  /// Behind the start, and before a source; none: nothing.
  std::optional<std::int32_t> first = std::nullopt;
  std::optional<std::int32_t> end = std::nullopt;  // ends a text, and a source; none: nothing does
  std::string_view never = {};  // characters that data may have and no text has, as one between two
};

/// What a run on token files asks of a task beside its samples.
struct TokenFileUse {
  /// Samples in one pass over the part that trains.
  std::function<std::int64_t(const TokenFiles& files, const SampleChoices& choices)>
      samples_in_epoch;
  /// Two runs have their samples in the same order where it is the same text.
  std::function<std::string(const TokenFiles& files, const SampleChoices& choices)> order;
};

struct Task {
  std::string name;  // "causal_lm"
  std::vector<TaskInput> inputs;
  std::int64_t tokens = 0;   // per sample: what speed is counted in
  std::int64_t routers = 0;  // layers with experts
  std::vector<TaskMean> means;
  /// What it measures and predicts of a batch of inputs. Parameters are declared as states.
  std::function<Measured(const TaskValues& inputs, const Pass& pass)> measure;
  /// The samples to train on, and those that are held out. They refer to the data, which must
  /// outlive them. Errors: Fault::Data: too little of it.
  MakeSamples train_samples, valid_samples;
  /// Judges the predictions for the held-out samples of the data, which must outlive it; none:
  /// nothing is predicted of a sample.
  std::function<std::unique_ptr<Judge>(const Dataset& data)> judge = nullptr;
  /// The means depend on which samples are in a batch together: validations have training's.
  bool compares_samples = false;
  bool judges_validations = false;  // all of them, not those after epochs alone
  /// The mean of `means` whose exponential is the perplexity, a score of evaluations; empty: none.
  std::string_view perplexity_of = {};
  std::optional<TextWriting> text = std::nullopt;  // none: the task writes no text
  DataKind data = DataKind::Text;                  // what train_samples and valid_samples take
  /// They take token files too; none: they do not.
  std::optional<TokenFileUse> token_files = std::nullopt;
  bool reads_pairs = false;      // a row of its data is two texts, a source and a target
  bool packs_documents = false;  // SampleChoices::packing has an effect
  /// Tokens of the longest sample that can be made of the data, where samples have lengths of their
  /// own and are padded to the context; none: they do not.
  std::function<std::int64_t(const Dataset& data)> longest_sample = nullptr;
};

/// Sets both kinds of samples of the task, which its data makes alike.
void set_samples(Task& task,
                 const std::function<std::unique_ptr<Samples>(const Dataset& data, DataPart part,
                                                              const SampleChoices& choices)>& make);

/// Every kind of data that the samples of a task can be made of.
std::vector<DataKind> data_taken(const Task& task);

/// The inputs of a program for a batch.
TaskValues inputs_of(const Task& task, Builder& builder, std::int64_t batch);

/// The loss of a step, from the means that `task.measure` returned.
Value loss_of(const Task& task, const std::vector<Mean>& means);

}  // namespace tessera
