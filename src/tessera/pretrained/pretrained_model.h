#pragma once
/// The room `pretrained`: models in Hugging Face's folders: read, and written.
/// For: names, shapes and orientation of tensors; keys of config.json that we have a meaning for.
/// Not for: tokenizers of such folders (tokenizers).
/// Rejected: going on with what is not understood. A key, a tensor or a class that would change
/// what the model computes is refused with its name.
///
/// A model in a folder as Hugging Face's transformers saves it: config.json, and weights as
/// safetensors. Its tensors are told and read as our parameters.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/models/config.h"
#include "tessera/tensor/sharding.h"

namespace tessera {

struct OpenPretrained {
  enum class Weights {
    Read,     // there must be some
    IfThere,  // what they say of the model counts, where there are some
    None,     // of config.json alone
  };
  Weights weights = Weights::Read;
  /// The user gave the task: the class that config.json names may be one that is not known here.
  bool task_given = false;
  /// That task makes vectors of texts, as modules.json of the folder says.
  bool of_sentences = false;
  /// What a user may do where weights are missing, but for downloading them, as ", or give FLAG".
  std::string_view or_else = "";
};

class PretrainedModel {
 public:
  /// Whether `path` is a folder with a config.json, or that of an adapter (PEFT's
  /// adapter_config.json), whose base is a model that is found here.
  static bool is_at(const std::string& path);
  /// Whether the folder has a file of weights, of whatever kind.
  static bool has_weights(const std::string& path);
  /// Refuses a folder that is no such model by what it is: an adapter, weights of another format.
  /// Anything else: it does nothing. Errors: Fault::Data.
  static void refuse_other(const std::string& path);
  /// Errors: Fault::Data: config.json, or a model that is computed otherwise here.
  /// Fault::Checkpoint: weights that are missing, damaged, of other shapes than the model's, or
  /// that lack tensors other than a head's.
  static PretrainedModel open(const std::string& folder, const OpenPretrained& how = {});

  ~PretrainedModel();
  PretrainedModel(PretrainedModel&&) noexcept;
  PretrainedModel& operator=(PretrainedModel&&) noexcept;

  const std::string& path() const;
  /// The folder of config.json: path(), or, of an adapter, that of the model which it is of.
  const std::string& base() const;
  /// It is an adapter that has weights in place of the base's, beside the task's own block.
  bool changes_base() const;
  /// All but the context of samples, which is as long as positions reach, and at most 1,024.
  const ModelConfig& config() const;
  /// config.json as it is.
  const std::string& json() const;
  /// Names of what its classifier tells apart, by number; empty: it has none, or nobody named them.
  const std::vector<std::string>& labels() const;
  /// What preprocessor_config.json says, as parse_image_processor reads it; empty: there is none.
  /// Errors: Fault::Data: work on pictures that is not known here.
  std::string image_processor() const;
  /// pad_token_id of config.json, where its classifier finds the end of a text by it.
  std::optional<std::int32_t> end_padding() const;
  /// eos_token_id of config.json, or the first of several; none: it says none.
  std::optional<std::int32_t> end_token() const;
  /// Its classifier is trained, finds the end of a text by pad_token_id, and that is no id: what it
  /// is, as "null". Then transformers reads the last token, whatever it is. Empty: otherwise.
  std::string reads_last_token() const;
  /// What a user should know who lets it write texts (hub_generation.h).
  const std::vector<std::string>& notices_of_writing() const;
  /// What a user should know: rates that differ, tensors that are not used, keys that nobody reads.
  const std::vector<std::string>& notices() const;

  /// Tasks that the family is read and written for, with the class of transformers of each:
  /// "causal_lm (GPT2LMHeadModel)"; the first is that of a folder that names none.
  std::vector<std::string> tasks() const;
  /// Of each tensor of the folder, used or not: its dtype as the file has it, and its bytes.
  std::vector<std::pair<std::string, std::int64_t>> stored() const;

  /// Our parameters that the folder has, by name, those of all tasks' heads; all of f32.
  const std::map<std::string, Shape, std::less<>>& parameters() const;
  /// Those that `model` has too, but those of the block `anew`, are of its shapes. Errors:
  /// Fault::Checkpoint, naming the folder's tensor, both shapes and keys of config.json.
  void check_shapes(const ModelConfig& model, std::string_view anew) const;
  /// `count` rows of a parameter from `first` on, row-major; a row is all that one element of its
  /// first dim holds.
  void read_rows(std::string_view parameter, std::int64_t first, std::int64_t count,
                 std::span<float> out) const;

 private:
  struct Parts;
  /// As the files have them.
  void read_stored_rows(std::string_view parameter, std::int64_t first, std::int64_t count,
                        std::span<float> out) const;
  explicit PretrainedModel(std::unique_ptr<const Parts> parts);
  std::unique_ptr<const Parts> parts_;
};

/// All of a parameter, into its bytes as f32.
void read_whole(const PretrainedModel& model, std::string_view parameter,
                std::span<std::byte> into);
/// The shard of it that a rank holds; zeros beyond the extents. Holds some rows of the whole at a
/// time.
void read_shard(const PretrainedModel& model, std::string_view parameter, const Sharding& sharding,
                const Mesh& mesh, const Coordinates& at, std::span<std::byte> into);

}  // namespace tessera
