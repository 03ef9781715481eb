#pragma once
/// How a family of models is written in Hugging Face's folders: a table of names, shapes and
/// orientation, and what its config.json says. One family is one file.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/models/family.h"
#include "tessera/pretrained/hub/hub_config.h"

namespace tessera {

/// Which rows of a parameter a tensor has. Rows of attn.qkv are grouped by key-value heads
/// (nn/transformer.h); those of the hub's tensors are grouped by queries, keys and values.
enum class HubRows {
  All,
  Queries,
  Keys,
  Values,
  Fused,  // queries, then keys, then values
  // Of cross.kv, which has for each head its key, then its value:
  CrossKeys,
  CrossValues,
};
/// [out, in] as torch's Linear, or [in, out] as GPT-2's Conv1D.
enum class HubOrder { OutIn, InOut };

/// One row of the table. A `#` stands for the number of a layer. Names that do not end in ".weight"
/// or ".bias" stand for both.
struct HubName {
  std::string_view ours, theirs;
  HubRows rows = HubRows::All;
  HubOrder order = HubOrder::OutIn;
  bool (*is_in)(const ModelConfig& model) = nullptr;  // which models have it; null: all
  std::string_view tasks = {};  // whose heads it is of, with blanks between; empty: of all tasks
};

/// A class of transformers: the model with the head of a task.
struct HubClass {
  std::string_view task, name;
};

/// A tensor that holds nothing but zeros.
struct HubZeros {
  std::string_view name;
  Shape (*shape)(const ModelConfig& model);
};

struct HubFamily {
  std::string_view model_type;        // in config.json
  std::span<const HubClass> classes;  // the first is that of the family's first task
  const ModelFamily* family;
  std::string_view prefix;  // of names, "transformer."; files of a model without heads lack it
  std::span<const HubName> names;
  /// Of tensors that hold nothing learned, or what another one holds, without the prefix; `*`
  /// stands for anything.
  std::span<const std::string_view> unread;
  /// The model that config.json describes: all but the context of samples. Errors: of HubConfig; a
  /// model that is computed otherwise here.
  void (*read)(const HubConfig& from, ModelConfig& to);
  /// What config.json says of a model, beside what all say.
  void (*write)(const ModelConfig& from, HubJson& to);
  /// Tensors that are refused where they hold anything else, and written.
  std::span<const HubZeros> zeros = {};
};

std::span<const HubFamily* const> hub_families();
/// By model_type. Errors: Fault::Data: an unknown one; the message lists the known ones and names
/// the file.
const HubFamily& hub_family_of(const HubConfig& config);
/// Of one of our families; nullptr: it is in no such folder.
const HubFamily* hub_family_of(const FamilyRef& family);

/// A tensor of a folder, and which rows of a parameter it has.
struct HubTensor {
  std::string ours, theirs;
  HubRows rows = HubRows::All;
  HubOrder order = HubOrder::OutIn;
};
enum class HubHeads { OfTask, OfAllTasks };
/// The table for a model of so many layers: all that its folder may have, with the heads of its
/// task or of every one.
std::vector<HubTensor> hub_tensors(const HubFamily& family, const ModelConfig& config,
                                   HubHeads heads);
/// The class for the model's task. Errors: Fault::Usage: transformers has none.
std::string_view hub_class_of(const HubFamily& family, const ModelConfig& config);
/// The task of the class that config.json names; the family's first where it names another.
std::string_view task_in_hub(const HubFamily& family, const HubConfig& config);

// The families, one file each.
extern const HubFamily kHubAlbert, kHubBart, kHubBert, kHubGpt2, kHubLlama, kHubRoberta, kHubT5,
    kHubVit;

}  // namespace tessera
