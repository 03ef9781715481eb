#include "tessera/pretrained/hub/hub_adapter.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/models/parameter_shapes.h"
#include "tessera/pretrained/hub/hub_rows.h"

namespace tessera {

namespace {

constexpr std::string_view kWeightEnd = ".weight", kAEnd = ".lora_A.weight",
                           kBEnd = ".lora_B.weight", kMagnitudeEnd = ".lora_magnitude_vector";
/// The part of qkv's or kv's rows that a tensor has; empty: it is no part of one.
std::string_view part_of(HubRows rows) {
  switch (rows) {
    case HubRows::Queries:
    case HubRows::PairedQueries: return "q";
    case HubRows::Keys:
    case HubRows::PairedKeys:
    case HubRows::CrossKeys: return "k";
    case HubRows::Values:
    case HubRows::CrossValues: return "v";
    default: return "";
  }
}

/// Rows whose order in B would not be that of one layer there.
bool are_apart(HubRows rows) {
  return rows == HubRows::PairedQueries || rows == HubRows::PairedKeys ||
         rows == HubRows::UpperHalf || rows == HubRows::LowerHalf;
}

std::string without_end(const std::string& name, std::string_view end) {
  return name.substr(0, name.size() - end.size());
}

/// Of a tensor's name; empty: it is none of an adapter.
std::string_view adapter_end(std::string_view name) {
  for (const std::string_view end : {kAEnd, kBEnd, kMagnitudeEnd})
    if (name.ends_with(end)) return end;
  return {};
}

std::string adapter_name(const std::string& theirs, std::string_view end) {
  return text(kHubAdapterPrefix, without_end(theirs, kWeightEnd), end);
}

/// Every layer of the table: "transformer.h.0.attn.c_attn".
std::vector<std::string> modules_of(const HubFamily& family, const ModelConfig& model) {
  std::vector<std::string> out;
  for (const HubTensor& tensor : hub_tensors(family, model, HubHeads::OfTask))
    if (tensor.theirs.ends_with(kWeightEnd)) out.push_back(without_end(tensor.theirs, kWeightEnd));
  return out;
}

/// The least ends of names that say these layers and no others, as target_modules has them.
std::set<std::string> ends_of(const std::set<std::string>& adapted,
                              const std::vector<std::string>& all) {
  std::set<std::string> out;
  for (const std::string& module : adapted) {
    std::size_t at = module.rfind('.');
    while (true) {
      const std::string end = at == std::string::npos ? module : module.substr(at + 1);
      const bool says_others = std::ranges::any_of(all, [&](const std::string& other) {
        return (other == end || other.ends_with("." + end)) && !adapted.contains(other);
      });
      if (!says_others || at == std::string::npos || at == 0) {
        out.insert(end);
        break;
      }
      at = module.rfind('.', at - 1);
    }
  }
  return out;
}

/// modules_to_save: those of the task's own block.
std::set<std::string> saved_modules(const HubFamily& family, const ModelConfig& model) {
  const std::string_view head = family_task(model).head;
  std::set<std::string> out;
  for (const HubTensor& tensor : hub_tensors(family, model, HubHeads::OfTask))
    if (!head.empty() && tensor.ours.starts_with(text(head, ".")))
      out.insert(tensor.theirs.substr(0, tensor.theirs.find('.')));
  return out;
}

/// As PEFT finds what it saves: by the end of a module's name, so that "classifier" is pre_classifier
/// too.
bool is_saved_with(const HubTensor& tensor, const std::set<std::string>& modules) {
  const std::string module = tensor.theirs.substr(0, tensor.theirs.find('.'));
  return std::ranges::any_of(modules,
                             [&](const std::string& saved) { return module.ends_with(saved); });
}

}  // namespace

std::vector<HubTensor> adapter_tensors(const HubFamily& family, const ModelConfig& model) {
  std::set<std::string, std::less<>> all, left;  // parameters of adapters; PEFT has no name for
  for (const auto& [name, shape] : parameter_shapes(model))
    if (is_of_adapter(name)) all.insert(name);
  left = all;
  require(
      kind_of(*family.family) != FamilyKind::Vision, "adapters of family ", model.family,
      " are not read or written as PEFT's, whose layers have other names; write the whole model ",
      "by tessera merge-adapter");
  std::vector<HubTensor> out;
  const std::set<std::string> saved = saved_modules(family, model);
  for (const HubTensor& tensor : hub_tensors(family, model, HubHeads::OfTask)) {
    if (is_saved_with(tensor, saved)) {
      HubTensor whole = tensor;
      whole.theirs = text(kHubAdapterPrefix, tensor.theirs);
      out.push_back(std::move(whole));
    }
    if (!tensor.ours.ends_with(kWeightEnd) || are_apart(tensor.rows)) continue;
    const std::string block = without_end(tensor.ours, kWeightEnd);
    const std::string_view part = part_of(tensor.rows);
    const std::string of_part = part.empty() ? block : text(block, ".", part);
    const bool apart = !part.empty() && all.contains(of_part + ".lora_a");
    const std::string& ours = apart ? of_part : block;
    if (!all.contains(ours + ".lora_a")) continue;
    out.push_back({ours + ".lora_a", adapter_name(tensor.theirs, kAEnd)});
    const HubRows rows = apart ? HubRows::All : tensor.rows;
    out.push_back({ours + ".lora_b", adapter_name(tensor.theirs, kBEnd), rows});
    if (model.lora.decomposed)
      out.push_back({text(ours, kLoraMagnitude), adapter_name(tensor.theirs, kMagnitudeEnd), rows});
  }
  for (const HubTensor& tensor : out) left.erase(tensor.ours);
  require(left.empty(), "adapter ", left.empty() ? "" : *left.begin(),
          ": transformers' layers of family ", model.family, " are divided otherwise, so that ",
          "PEFT has no adapter like it; give other lora-targets, as ",
          "qkv in place of q, k and v, or merge it by tessera merge-adapter");
  return out;
}

std::string adapter_config_text(const HubFamily& family, const ModelConfig& model,
                                const std::string& base) {
  std::set<std::string> adapted;
  const std::set<std::string> saved = saved_modules(family, model);
  bool in_out = false;
  for (const HubTensor& tensor : hub_tensors(family, model, HubHeads::OfTask))
    in_out = in_out || tensor.order == HubOrder::InOut;
  for (const HubTensor& tensor : adapter_tensors(family, model)) {
    const std::string theirs = tensor.theirs.substr(kHubAdapterPrefix.size());
    if (theirs.ends_with(kAEnd)) adapted.insert(without_end(theirs, kAEnd));
  }
  HubJson out = {{"peft_type", "LORA"}, {"base_model_name_or_path", base}};
  const std::string_view type = peft_task_type(model);
  out["task_type"] = type.empty() ? HubJson() : HubJson(type);
  if (type.empty() && !has_head(model, TaskHead::Body)) {
    std::string module(family.model_type);
    std::ranges::replace(module, '-', '_');
    out["auto_mapping"] = {
        {"base_model_class", std::string(hub_class_of(family, model))},
        {"parent_library", text("transformers.models.", module, ".modeling_", module)}};
  }
  out["inference_mode"] = true;
  out["r"] = model.lora.rank;
  out["lora_alpha"] =
      model.lora.alpha == 0 ? 2.0 * static_cast<double>(model.lora.rank) : model.lora.alpha;
  out["lora_dropout"] = model.lora.dropout;
  out["use_rslora"] = model.lora.rank_stabilized;
  out["use_dora"] = model.lora.decomposed;
  out["bias"] = "none";
  out["fan_in_fan_out"] = in_out;
  out["target_modules"] = ends_of(adapted, modules_of(family, model));
  out["modules_to_save"] = saved.empty() ? HubJson() : HubJson(saved);
  return out.dump(2) + "\n";
}

namespace {

/// Reads the tensors of an adapter's file for one model.
class AdapterReader {
 public:
  AdapterReader(const std::string& folder, const HubFamily& family, HubModel& model,
                HubAdapter& adapter)
      : folder_(folder), family_(family), model_(model), adapter_(adapter) {
    // A model without a head is saved without the family's prefix.
    for (const HubTensor& tensor : hub_tensors(family, model.config, HubHeads::OfAllTasks)) {
      table_.emplace(tensor.theirs, tensor);
      if (tensor.heads == TaskHead::None && !family.label_prefix.empty()) {
        HubTensor labelled = tensor;
        labelled.theirs = text(family.label_prefix, tensor.theirs);
        table_.emplace(labelled.theirs, labelled);
      }
      if (!family.prefix.empty() && tensor.theirs.starts_with(family.prefix))
        table_.emplace(tensor.theirs.substr(family.prefix.size()), tensor);
    }
  }

  void run() {
    std::set<std::string> targets;
    for (const std::string& name : adapter_.weights.names()) sort(name, targets);
    if (layers_.empty())
      fail(Fault::Checkpoint, "'", folder_, "' has no adapter: ", kHubAdapterWeights,
           " has no tensor that ends in ", kAEnd);
    model_.config.lora.targets.assign(targets.begin(), targets.end());
    take_classes();
    take_saved();
    take_layers();
  }

 private:
  [[noreturn]] void refuse(const std::string& name, std::string_view why) const {
    fail(Fault::Checkpoint, adapter_.weights.file_of(name), ": tensor '", printable(name), "' ",
         why);
  }

  void sort(const std::string& name, std::set<std::string>& targets) {
    std::string plain = name;
    if (plain.starts_with(kHubAdapterPrefix)) plain.erase(0, kHubAdapterPrefix.size());
    const std::string_view end = adapter_end(plain);
    const auto found =
        table_.find(end.empty() ? plain : without_end(plain, end) + std::string(kWeightEnd));
    if (found == table_.end())
      refuse(name, text("is of no layer of family ", model_.config.family));
    const HubTensor& tensor = found->second;
    if (end.empty()) {
      saved_.emplace_back(name, tensor);
      return;
    }
    layers_.emplace(adapter_name(tensor.theirs, end), name);
    const std::string_view part = part_of(tensor.rows);
    const std::string block = without_end(tensor.ours, kWeightEnd);
    targets.insert(part.empty() ? block.substr(block.rfind('.') + 1) : std::string(part));
  }

  bool is_of_head(const HubTensor& tensor) const {
    const std::string_view head = family_task(model_.config).head;
    return !head.empty() && tensor.ours.starts_with(text(head, "."));
  }

  Shape shape_of(const std::string& name) const { return adapter_.weights.find(name)->type.shape; }

  /// As many classes as the saved head has rows for.
  void take_classes() {
    if (!reads_field(model_.config, "classes")) return;
    for (const auto& [name, tensor] : saved_) {
      if (!is_of_head(tensor) || !tensor.ours.ends_with(kWeightEnd)) continue;
      ModelConfig asked = model_.config;
      asked.classes = shape_of(name)[0];
      const auto shapes = parameter_shapes(asked);
      const bool fits = std::ranges::all_of(saved_, [&](const auto& each) {
        const auto ours = shapes.find(each.second.ours);
        return !is_of_head(each.second) ||
               (ours != shapes.end() && ours->second == shape_of(each.first));
      });
      if (!fits) continue;
      if (asked.classes != model_.config.classes) model_.labels.clear();
      model_.config.classes = asked.classes;
      return;
    }
  }

  /// What was trained whole, beside the adapters.
  void take_saved() {
    const auto shapes = parameter_shapes(model_.config);
    for (const auto& [name, tensor] : saved_) {
      const auto ours = shapes.find(tensor.ours);
      if (ours == shapes.end())
        refuse(name, text("is of no part of a model with task ", model_.config.task));
      if (tensor.rows != HubRows::All)
        refuse(name, "is a part of a weight that is one here; merge the adapter with PEFT");
      if (model_.config.tied_head && tensor.ours == "embed.token.weight")
        refuse(name,
               "is tied to the head, which PEFT then keeps apart; merge the adapter with PEFT");
      const bool transposed = tensor.order == HubOrder::InOut && ours->second.ndim() == 2;
      const Shape wanted = hub_shape(tensor.rows, transposed, ours->second, model_.config);
      if (shape_of(name) != wanted)
        refuse(name, text("is ", shape_of(name), "; of this model it is ", wanted));
      adapter_.match.sources[tensor.ours].push_back({name, tensor.rows, transposed});
      adapter_.match.parameters.emplace(tensor.ours, ours->second);
      adapter_.changes_base = adapter_.changes_base || !is_of_head(tensor);
    }
  }

  void take_layers() {
    const auto shapes = parameter_shapes(model_.config);
    std::vector<std::string> lacking;
    for (const HubTensor& tensor : adapter_tensors(family_, model_.config)) {
      if (adapter_end(tensor.theirs).empty()) continue;
      const auto found = layers_.find(tensor.theirs);
      if (found == layers_.end()) {
        lacking.push_back(tensor.theirs);
        continue;
      }
      const Shape& ours = shapes.at(tensor.ours);
      const Shape wanted =
          hub_shape(tensor.rows, false, ours, of_stack(model_.config, tensor.ours));
      const std::string name = found->second;
      layers_.erase(found);
      if (shape_of(name) != wanted)
        refuse(name, text("is ", shape_of(name), "; of this model it is ", wanted));
      adapter_.match.sources[tensor.ours].push_back({name, tensor.rows, false});
      adapter_.match.parameters.emplace(tensor.ours, ours);
    }
    if (!layers_.empty())
      refuse(layers_.begin()->second,
             "is of a layer that has no adapter here, where layers of attention and feed-forward "
             "parts have some; merge the adapter with PEFT");
    if (!lacking.empty())
      fail(Fault::Checkpoint, "'", folder_, "' lacks adapters of some layers, which all layers of ",
           "one kind must have: ", some_of(lacking));
  }

  const std::string& folder_;
  const HubFamily& family_;
  HubModel& model_;
  HubAdapter& adapter_;
  std::map<std::string, HubTensor, std::less<>> table_;  // by their names
  std::map<std::string, std::string> layers_;            // in the file, by the name of the table
  std::vector<std::pair<std::string, HubTensor>> saved_;
};

}  // namespace

HubAdapter::HubAdapter(const std::string& folder, const HubAdapterConfig& config,
                       const HubFamily& family, HubModel& model)
    : weights(HubWeights::of_file((std::filesystem::path(folder) / kHubAdapterWeights).string())) {
  model.config.lora = config.lora;
  TaskHead head = config.head;
  for (const HubClass& each : family.classes)
    if (head == TaskHead::None && each.name == config.model_class) head = each.head;
  if (head != TaskHead::None && !has_head(model.config, head)) {
    const FamilyTask* const task = find_hub_task(family, head, "");
    if (task == nullptr)
      fail(Fault::Data, "'", folder, "' is an adapter of a task (task_type of ", kHubAdapterConfig,
           ") that family ", model.config.family, " does not have");
    model.config.task = task->name;
    model.task.task = task;
  }
  AdapterReader(folder, family, model, *this).run();
}

}  // namespace tessera
