#pragma once
/// How a family of models is written in Hugging Face's folders, as tables: its tensors with all of
/// their names, and the keys of its config.json. One family is one file of the folder `families`,
/// whose name it has (qwen2.cpp defines kHubQwen2).

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/models/family.h"
#include "tessera/pretrained/hub/hub_config.h"
#include "tessera/pretrained/hub/hub_keys.h"

namespace tessera {

/// Which rows of a parameter a tensor has. Rows of attn.qkv are grouped by key-value heads
/// (nn/transformer.h); those of the hub's tensors are grouped by queries, keys and values.
enum class HubRows {
  All,
  Queries,
  Keys,
  Values,
  Fused,  // queries, then keys, then values
  // Heads whose rotary pairs are neighbours, (2i, 2i + 1), where ours are (i, i + n / 2):
  PairedQueries,
  PairedKeys,
  // Their tensor has the rows of two of ours, one above the other:
  UpperHalf,
  LowerHalf,
  OneRow,  // theirs is [1, n], and ours [n]
  // Of cross.kv, which has for each head its key, then its value:
  CrossKeys,
  CrossValues,
  Expert,  // ours is [experts, out, in], of which theirs is one
  // Theirs is [experts, in, out] or, of biases, [experts, out]; of two of ours, whose results stand
  // in turns: even, odd.
  Experts,
  EvenOfExperts,
  OddOfExperts,
  // Of latent attention. In theirs the rows that turn by position stand last, in pairs, in ours first:
  LatentQueries,  // in each head
  LatentKeys,     // behind those of which keys and values are made
};
/// [out, in] as torch's Linear, or [in, out] as GPT-2's Conv1D.
enum class HubOrder { OutIn, InOut };

/// One row of the table. A `#` stands for the number of a layer, an `@` for that of an expert. Names
/// that end neither in ".weight" nor in "bias" stand for both.
///
/// A row that is of some heads alone is a part of them. Where the folder is of another task all
/// rows of the head may be missing: it begins anew, and that is told. Every other tensor must be
/// there, by this name or by that of a tie.
struct HubName {
  std::string_view ours, theirs;
  HubRows rows = HubRows::All;
  HubOrder order = HubOrder::OutIn;
  bool (*is_in)(const ModelConfig& model) = nullptr;  // which models have it; null: all
  TaskHead heads = TaskHead::None;                    // it is a part of; None: every model has it
  std::int64_t first = 0;                             // the first layer that has it
};

/// A second name of a tensor: whoever saved the folder has kept either, or both.
struct HubTie {
  std::string_view theirs;  // as the table has it
  std::string_view also;
  /// The two may differ: then `also` is a parameter of its own, which the table has too, and the
  /// model is not tied. Else a folder where they differ is refused.
  bool may_differ = false;
  TaskHead heads = TaskHead::None;  // `also` is a part of; None: every model has it
  bool (*is_in)(const ModelConfig& model) = nullptr;  // which models have it; null: all
};

/// A class of transformers: the model with the head of some of the family's tasks.
struct HubClass {
  TaskHead head;
  std::string_view name;
  /// It is true of the models of this class, which comes before that of the others; null: of none.
  bool ModelConfig::*with = nullptr;
};

/// A tensor that is the same in every model of its sizes.
struct HubConstant {
  std::string_view name;
  std::string_view why;  // "zeros, as no value is added there"
  Shape (*shape)(const ModelConfig& model);
  /// Element i. Files of 16 bits, and those of others, may differ by `within`.
  double (*at)(const ModelConfig& model, std::int64_t i) = [](const ModelConfig&, std::int64_t) {
    return 0.0;
  };
  double within = 0;
  bool is_written = true;
  TaskHead heads = TaskHead::None;  // it is a part of; None: every model has it
};

/// Other versions of the program that wrote a folder say `from` within names.
struct HubSpelling {
  std::string_view from, to;
};

struct HubFamily {
  std::string_view model_type;  // in config.json
  std::span<const HubClass> classes;
  std::string_view base_class;  // that of the model without a head
  const ModelFamily* family;
  /// What models with labels have before all names but those of their heads.
  std::string_view label_prefix = {};
  std::string_view prefix = {};  // of names, "transformer."; files of a model without heads lack it
  std::span<const HubName> body = {};  // rows that several families have: without the prefix
  std::span<const HubName> names = {};
  std::span<const HubTie> ties = {};
  std::span<const HubSpelling> spellings = {};
  /// Of tensors that hold nothing learned, without the prefix; `*` stands for anything.
  std::span<const std::string_view> unread = {};
  /// Tensors that a folder may lack, and which are refused where they hold anything else.
  std::span<const HubConstant> constants = {};
  HubKeys keys;
  std::string_view harmless = {};  // keys that change no number here, with blanks between
  /// What no row can say: it reads, judges and writes the rows of HubUse::Own. Errors: HubConfig's.
  void (*read)(const HubConfig& from, ModelConfig& to) = [](const HubConfig&, ModelConfig&) {};
  void (*write)(const ModelConfig& from, HubJson& to) = [](const ModelConfig&, HubJson&) {};
  /// The model is as it was, but its head is a matrix of its own.
  void (*untie)(ModelConfig& model) = [](ModelConfig& model) { model.tied_head = false; };
  /// Whether a head that differs from the table is what config.json says, and no news.
  bool (*has_own_head)(const ModelConfig& model) = [](const ModelConfig&) { return false; };
  bool only_read = false;        // models of `family` are written as another row's, of transformers
  bool refuses_unused = false;   // a tensor that nothing reads; else that is told
  bool grouped_queries = false;  // there may be fewer key-value heads than heads
  bool ends_by_padding = false;  // its classifiers find the end of a text by pad_token_id
};

std::span<const HubFamily* const> hub_families();
/// By model_type. Errors: Fault::Data: an unknown one, or none; the message lists the known ones
/// and names the file.
const HubFamily& hub_family_of(const HubConfig& config);
/// By which one of our families is written; nullptr: it is in no such folder.
const HubFamily* hub_family_of(const FamilyRef& family);

/// A tensor of a folder, and which rows of a parameter it has.
struct HubTensor {
  std::string ours, theirs;
  HubRows rows = HubRows::All;
  HubOrder order = HubOrder::OutIn;
  TaskHead heads = TaskHead::None;
  std::int64_t expert = 0;  // of HubRows::Expert
};
enum class HubHeads { OfTask, OfAllTasks };
/// The table for a model of so many layers: all that its folder may have, with the heads of its
/// task or of every one.
std::vector<HubTensor> hub_tensors(const HubFamily& family, const ModelConfig& config,
                                   HubHeads heads);

/// The class of the family's models with this head, and nothing beside it; nullptr: there is none.
const HubClass* find_hub_class(const HubFamily& family, TaskHead head);
/// "masked_lm (BertForMaskedLM)", ...: the family's tasks that have a class.
std::vector<std::string> hub_tasks(const HubFamily& family);
/// The class for the model's task. Errors: Fault::Usage: transformers has none.
std::string_view hub_class_of(const HubFamily& family, const ModelConfig& config);

/// The family's task with this head that learns this of labels (problem_type of config.json), or
/// else its first with the head; nullptr: there is none.
const FamilyTask* find_hub_task(const HubFamily& family, TaskHead head,
                                std::string_view problem_type);
/// What `architectures` of config.json says.
struct HubTask {
  const FamilyTask* task = nullptr;  // the family's first where none is named
  const HubClass* named = nullptr;   // by a class, whose head the folder has; null: it is not
};
enum class TaskGiven { No, Yes };  // by the user, so that the folder's does not count
/// Errors: Fault::Data: a class that is not known here, where nobody gave the task.
HubTask task_in_hub(const HubFamily& family, const HubConfig& config, TaskGiven given);

/// The model that config.json describes: all but the context of samples is as it says. Errors:
/// Fault::Data: of read_keys; a model that is computed otherwise here.
struct HubModel {
  ModelConfig config;
  HubTask task;
  std::vector<std::string> labels = {};  // names of classes; empty: nobody named them
  std::vector<std::string> notices = {};
};
HubModel read_hub_model(const HubFamily& family, const HubConfig& from, TaskGiven given);
/// Longest samples, unless the user gives the length.
inline constexpr std::int64_t kMostHubContext = 1024;

}  // namespace tessera
