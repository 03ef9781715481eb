#pragma once
/// The room `models`: families, tasks, and the parallelism of Transformers as a strategy.
/// For: what `--family` and `--task` name, one file and one row each.
/// Not for: layers (nn), or models in the folders of others (pretrained).
/// Rejected: virtual functions: a family is a row of functions, most with a default, and one of a
/// program's own is handed over beside the library's.
///
/// Model families: what `--family` names. A family of the library is one file of the folder
/// `families`, whose name it has (qwen2.cpp defines kQwen2); a program adds its own by handing it
/// over. docs/guides/cpp-family.md shows one.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/base/field_problems.h"
#include "tessera/models/config.h"
#include "tessera/models/task.h"
#include "tessera/models/task_kind.h"
#include "tessera/nn/tensor_cuts.h"
#include "tessera/nn/transformer.h"

namespace tessera {

class Vocabulary;

/// Layers that follow each other: the blocks "BLOCK.0", "BLOCK.1", ...
struct LayerStack {
  std::string_view block;  // "layers"
  std::int64_t layers = 0;
  std::int64_t attentions = 1;  // in each layer
};

/// A field of the configuration that a family reads.
struct ReadField {
  std::string_view name;       // of its flag: "ffn-width"
  std::string_view note = {};  // for help, where it means more than for other families
};

/// Something that a model of a family can be trained to do: a row of models/task_kind.h, or one of
/// the program's own, and what the family makes of it. The first of a family is called
/// "pretraining" too.
struct FamilyTask : TaskKind {
  /// `config` is complete and has no problems.
  Task (*make)(const ModelConfig& config);
  /// The fields of ModelConfig that have an effect with this task, beside those of the family.
  std::span<const ReadField> reads = {};
  /// As ModelFamily::find_problems, of this task alone; nullptr: nothing is.
  void (*find_problems)(const ModelConfig& config, FieldProblems& problems) = nullptr;
  /// The block with a row for each label: it begins anew where weights are of other labels.
  std::string_view head = {};
  /// Tokens that it needs beside the family's and that a vocabulary lacks, or, of nullptr, one of
  /// bytes: their ids follow those of the data. nullptr: it needs none.
  std::int64_t (*lacked_tokens)(const Vocabulary* vocabulary) = nullptr;
};

struct ModelFamily {
  std::string_view name;
  std::string_view doc = {};
  /// The fields of ModelConfig that have an effect whatever the task, all of them but `family` and
  /// `task`. Whoever gives another one hears that it does nothing.
  std::span<const ReadField> reads = {};
  /// What a model can be trained to do; without a word of the user it is the first.
  std::span<const FamilyTask> tasks = {};
  /// Sets fields whose published value is not that of ModelConfig, before anything else does.
  void (*publish)(ModelConfig& config) = [](ModelConfig&) {};
  /// Sets sizes that were left open (0) where the family derives them otherwise than ModelConfig.
  void (*complete)(ModelConfig& config) = [](ModelConfig&) {};
  /// Adds what is wrong with a configuration for this family alone, a sentence each, with the names
  /// of the fields that it judges.
  void (*find_problems)(const ModelConfig& config, FieldProblems& problems) = [](const ModelConfig&,
                                                                                 FieldProblems&) {};
  /// What has changed in the meaning of the same weights since the family's first version, as far
  /// as it concerns this configuration, a clause each. Checkpoints record how many such changes
  /// there were: weights from before one are refused, with its clause.
  std::vector<std::string_view> (*changes)(const ModelConfig& config) =
      [](const ModelConfig&) -> std::vector<std::string_view> { return {}; };
  /// The layers, in the order in which they are computed and numbered.
  std::vector<LayerStack> (*stacks)(const ModelConfig& config) =
      [](const ModelConfig& config) -> std::vector<LayerStack> {
    return {{"layers", config.layers}};
  };
  /// What tensor parallelism splits beside transformer_cuts().
  std::span<const TensorCut> cuts = {};
  /// Tokens of the model that no text has; their ids follow those of the data's vocabulary.
  std::int64_t special_tokens = 0;
  /// Those of a vocabulary that has them itself, as ModelConfig::special_tokens has them; empty: it
  /// lacks some.
  std::string (*tokens_of)(const Vocabulary& vocabulary) = [](const Vocabulary&) {
    return std::string();
  };
  /// What its layers are made of, where no field of the configuration says it: layer_of
  /// (models/layer.h) fills in the rest. A flag of another program that says so names the family.
  TransformerLayer layer = {};
  bool first_sees_all = false;  // of each `global_every` layers; else the last sees all
  // Of causal models:
  bool head_bias = false;             // logits have one, tied or not
  bool slopes = false;                // distances are known by alibi_slopes, in place of positions
  bool table_norm = false;            // rows of tokens are normed
  bool scaled_table = false;          // rows of tokens are multiplied by the root of their width
  bool query_layer = false;           // queries of the last layer are learned, a row a position
  std::int64_t unread_positions = 0;  // rows of the table of positions before the first token's
  /// In a program that brings it, it takes the place of the library's family of this name.
  bool replaces = false;
  bool standard = false;  // what a model is of where nobody names a family; one is
  /// Flags of Megatron-LM that say what layers are made of mean this one, if it is made so.
  bool megatron = false;
};

/// The families that a program brings beside the library's. Each outlives the program's use of it.
/// One that needs more than its functions are given derives from ModelFamily: the `family` of a
/// configuration is that object.
using OwnFamilies = std::vector<const ModelFamily*>;

/// Those of the library: one for each file of the folder `families`, by name.
std::span<const ModelFamily* const> model_families();
/// Those of the library, but for those that `own` replaces, and `own`. Errors: Fault::Usage: two of
/// one name.
std::vector<const ModelFamily*> all_families(const OwnFamilies& own);
/// Errors: Fault::Usage: an unknown family; the message lists the known ones.
const ModelFamily& find_model(std::string_view name, const OwnFamilies& own = {});

/// With one of its tasks at least.
bool reads_field(const ModelFamily& family, std::string_view field);
/// With the task of the configuration.
bool reads_field(const ModelConfig& config, std::string_view field);

/// The task of a configuration, by its name; nullptr: the family has no such task.
const FamilyTask* find_task(const ModelConfig& config);
/// The same. Errors: Fault::Usage: there is none; the message lists those of the family.
const FamilyTask& family_task(const ModelConfig& config);
/// Whether the configuration's model has this head.
bool has_head(const ModelConfig& config, TaskHead head);
/// Whether the configuration's task is `name`.
bool has_task(const ModelConfig& config, std::string_view name);

/// By what its models read and write.
enum class FamilyKind : std::uint8_t { Decoder, Encoder, EncoderDecoder, Vision };
FamilyKind kind_of(const ModelFamily& family);
/// "decoder", "vision model"
std::string_view to_text(FamilyKind kind);

/// What a model of the family is before anything is told: ModelConfig's values, but for those that
/// were published otherwise.
ModelConfig published(const FamilyRef& family);

/// The least vocabulary of a model for data of so many tokens: these and the special ones of the
/// family and of the task.
std::int64_t vocabulary_for(const ModelConfig& config, std::int64_t of_data);

/// The same for a vocabulary, which may have the special tokens itself.
std::int64_t vocabulary_for(const ModelConfig& config, const Vocabulary& of_data);

/// Whose special tokens vocabulary_for counts, for messages: "family t5", "family t5 and task
/// denoising".
std::string whose_special_tokens(const ModelConfig& config);

/// Of a configuration that leaves its special tokens open, those that the vocabulary has.
void take_special_tokens(ModelConfig& config, const Vocabulary& of_data);

/// All layers of the model, of every stack, also where they are too many; their blocks, by number.
std::int64_t layer_count(const ModelConfig& config);
std::vector<std::string> layer_blocks(const ModelConfig& config);

/// Sets what was left open, the task's name and sizes, as the family does.
void complete(ModelConfig& config);

/// What the model is trained to do. Errors: as of family_task; Fault::Usage: its row says of texts
/// what the task does not do.
Task task_of(const ModelConfig& config);

}  // namespace tessera
