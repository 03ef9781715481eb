#pragma once
/// Datasets of a user's own: samples by number, each with named features.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tessera/config/config.h"
#include "tessera/models/task.h"
#include "tessera/token_files/samples.h"

namespace tessera {

/// What a sample has under one name: a number, or a row of them.
using Feature = std::variant<std::int32_t, float, std::vector<std::int32_t>, std::vector<float>>;

/// The features of a sample: {"input_ids", ...}, {"labels", ...}. In a batch each is a tensor
/// [batch] or [batch, numbers of the row], of i32 or f32.
using Features = std::map<std::string, Feature, std::less<>>;

/// The input, beside features, that tells samples from what fills up the last batch of a
/// validation: [batch] of f32, 1 or 0. Batch::is_sample() is it.
inline constexpr const char* kIsSample = "batch.is_sample";

/// What torch.utils.data.Dataset is. Functions may be called from any thread, and again for the
/// same sample.
class MapDataset {
 public:
  virtual ~MapDataset() = default;
  virtual std::int64_t size() const = 0;
  /// Sample `i`. All have the same features, of the same type and, without a Datasets::collate, of
  /// the same length: what is shorter is padded here. A label that does not count is kIgnoredLabel.
  virtual Features get(std::int64_t i) const = 0;
  /// Several of them, one after the other, for a dataset that has many at once sooner.
  virtual std::vector<Features> get_all(std::span<const std::int64_t> numbers) const;
  /// Samples come in their order alone, each once but for the first: a stream, which nobody reads
  /// through beforehand.
  virtual bool in_order() const { return false; }
  /// A text by which a resumed run knows that it has the samples that it began with; empty: some of
  /// them say it.
  virtual std::string digest() const { return ""; }
};

/// How many samples there are. An error in size() names it: "in MyDataset::size()".
std::int64_t size_of(const MapDataset& dataset);
/// Sample `i`. An error in get() names it: "in MyDataset::get(3)".
Features sample_of(const MapDataset& dataset, std::int64_t i);
/// Those of these numbers, as get_all gives them. Errors: Fault::Data: not as many.
std::vector<Features> samples_of(const MapDataset& dataset, std::span<const std::int64_t> numbers);
/// All of them, some at a time, in their order.
void each_sample(const MapDataset& dataset,
                 const std::function<bool(std::int64_t i, const Features& sample)>& goes_on);

/// Makes a batch of samples: is given those that are read together, and returns as many, each with
/// the same features and rows of one length, as pad_to_longest does. May be called from any thread,
/// and with samples in any grouping, one alone too: what it returns must not depend on that but for
/// padding.
using Collate = std::function<std::vector<Features>(std::vector<Features> samples)>;

/// Fills rows of each feature up to the longest one of these samples: labels with kIgnoredLabel,
/// all else with 0. A sample with input_ids gets an attention_mask, unless it has one, so that
/// padding is not read. Errors: Fault::Data: an empty row; a mask of another length than its ids.
std::vector<Features> pad_to_longest(std::vector<Features> samples);

/// What a run trains on, and what it validates on; `valid` may be empty. No `train`: the data that
/// the flags name, as `tessera train` reads it. A template tests `test` when training has ended.
struct Datasets {
  std::shared_ptr<const MapDataset> train, valid, test = nullptr;
  /// Called with the samples of all of them; none: these have rows of one length. Programs are
  /// compiled for one length of a text, --seq-length (of a source --source-context), to which
  /// shorter rows are filled up in the same way; without the flag it is that of the longest row of
  /// all datasets, which are read through for that, and of a stream the first. Rows that the model
  /// does not know as those of a text must have one length in all batches.
  Collate collate = nullptr;

  /// For a resumed run: those that it began with had the same number of samples, and some of these
  /// were the same; of a stream, the first.
  std::string digest() const;
};

/// How many samples a run takes; 0: all that there are, once. That is `train` of a run of epochs,
/// each of which is a pass over them.
struct NumSamples {
  std::int64_t train = 0, valid = 0;
};
NumSamples num_samples(const RunConfig& args);

/// Megatron-LM's function: samples of the token files that `args` names (--data-path, --split,
/// --valid-data-path), in the order in which Megatron-LM takes them. Feature "text": seq-length + 1
/// token ids. Errors: as of load_token_files.
Datasets build_train_valid_test_datasets(const RunConfig& args, const NumSamples& wanted);

/// The inputs of a task whose samples are those of `train`. Errors: Fault::Data: an empty dataset;
/// samples without features; a row without numbers; a `valid` whose first sample has other features
/// than that of `train`, or of another type or, if nothing collates them, length.
std::vector<TaskInput> inputs_of(const Datasets& data, const ModelConfig& model);

/// Features that are rows of one text: a sample has as many numbers of each.
struct RowsOfText {
  std::vector<std::string> features;
  std::string_view flag;  // which says the length of its rows in a batch
};

struct MapSamplesOptions {
  std::uint64_t seed = 0;
  bool shuffled = false;  // each epoch anew; else by number, and from 0 again
  bool held_out = false;  // behind the last are samples of which nothing counts
  std::int64_t most = 0;  // the first so many; 0: all
  /// What is known of features by their names: numbers are below `values`; behind the last sample
  /// of those held out, what is ignorable is kIgnoredLabel, or kIgnoredNumber.
  std::vector<TaskInput> known = {};
  std::vector<std::string> left_out = {};  // features of which nothing is read
  std::string notice = {};                 // Samples::notice

  /// Of collated samples: what is filled up to the rows of a batch, as what lies behind the last
  /// sample.
  std::vector<RowsOfText> texts = {};
  bool padding_is_read = false;  // so that what is not ignorable must not need to be filled up
};
/// Errors of fill: Fault::Data: a sample with other features than the first one, or of another type
/// or of a length that is not to be filled up; a batch that was made for others; a number of what is
/// known that is too large or negative.
std::unique_ptr<Samples> map_samples(std::shared_ptr<const MapDataset> dataset,
                                     const MapSamplesOptions& options);

}  // namespace tessera
