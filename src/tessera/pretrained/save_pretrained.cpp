#include "tessera/pretrained/save_pretrained.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/format.h"
#include "tessera/base/text.h"
#include "tessera/files/file.h"
#include "tessera/files/safetensors.h"
#include "tessera/files/staged_folder.h"
#include "tessera/models/parameter_shapes.h"
#include "tessera/pretrained/hub/hub_adapter.h"
#include "tessera/pretrained/hub/hub_family.h"
#include "tessera/pretrained/hub/hub_image_processor.h"
#include "tessera/pretrained/hub/hub_labels.h"
#include "tessera/pretrained/hub/hub_rows.h"
#include "tessera/pretrained/hub/hub_sentences.h"
#include "tessera/pretrained/hub/hub_weights.h"
#include "tessera/pretrained/merge_adapters.h"
#include "tessera/tensor/convert_floats.h"
#include "tessera/tokenizers/files.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

const HubFamily& family_to_write(const ModelConfig& model) {
  const HubFamily* family = hub_family_of(model.family);
  std::vector<std::string> known;
  for (const HubFamily* each : hub_families()) {
    if (!each->only_read) known.emplace_back(each->family->name);
  }
  require(family != nullptr, "export: family ", model.family,
          " has no Hugging Face format; families that have one are ", join(known));
  require(family->grouped_queries || model.groups() == model.heads, "export: kv-heads ",
          model.groups(), " with heads ", model.heads, ": transformers' ",
          hub_class_of(*family, model), " has as many of both");
  return *family;
}

/// A parameter of ours whole; nothing: it is zeros. The one that was read last stays: several tensors
/// are made of one.
class WholeParameters {
 public:
  explicit WholeParameters(const ParameterReader& parameters) : parameters_(parameters) {}
  const std::vector<float>& operator()(const std::string& name) {
    if (name == name_) return values_;
    const Shape* ours = parameters_.find(name);
    values_.resize(ours == nullptr ? 0 : static_cast<std::size_t>(ours->numel()));
    if (ours != nullptr) parameters_.read(name, values_);
    name_ = name;
    return values_;
  }

 private:
  const ParameterReader& parameters_;
  std::string name_;
  std::vector<float> values_;
};

/// One of their tensors, made of rows of ours when it is asked for.
class OutgoingTensor {
 public:
  OutgoingTensor(const HubTensor& tensor, const Shape& ours, const ModelConfig& model)
      : parts_{tensor},
        model_(of_stack(model, tensor.ours)),
        rows_(hub_row_count(tensor.rows, model_, ours[0])),
        columns_(ours.ndim() == 1 ? 1 : ours.numel() / ours[0]),
        transposed_(tensor.order == HubOrder::InOut && ours.ndim() == 2),
        shape_(hub_shape(tensor.rows, transposed_, ours, model_)) {}
  const std::string& name() const { return parts_.front().theirs; }
  const Shape& shape() const { return shape_; }
  /// Another parameter has the rest of its rows.
  void add(const HubTensor& part) { parts_.push_back(part); }
  /// It is made of no parameter.
  void fill(double (*constant)(const ModelConfig& model, std::int64_t i)) { constant_ = constant; }

  /// All elements in their order.
  std::vector<float> values(WholeParameters& whole) const {
    std::vector<float> out(static_cast<std::size_t>(shape_.numel()));
    for (std::size_t i = 0; constant_ != nullptr && i < out.size(); ++i)
      out[i] = static_cast<float>(constant_(model_, static_cast<std::int64_t>(i)));
    for (const HubTensor& part : parts_) {
      if (const std::vector<float> ours = whole(part.ours); !ours.empty()) put(part, ours, out);
    }
    return out;
  }

 private:
  void put(const HubTensor& part, const std::vector<float>& ours, std::vector<float>& out) const {
    if (const std::optional<HubTurns> turns = hub_turns(part.rows)) {
      const std::int64_t in = shape_.ndim() > 2 ? shape_[1] : 1;
      for (std::int64_t i = 0; i < std::ssize(ours); ++i)
        out[static_cast<std::size_t>(i / columns_ * columns_ * turns->of +
                                     turns->place(i % columns_, columns_ / in, in))] =
            ours[static_cast<std::size_t>(i)];
      return;
    }
    for (const HubRowRun& run : hub_row_runs(part.rows, model_, rows_, part.expert)) {
      for (std::int64_t i = 0; i < run.count; ++i) {
        const float* from = ours.data() + (run.ours + i) * columns_;
        for (std::int64_t c = 0; c < columns_; ++c)
          out[static_cast<std::size_t>(transposed_ ? c * rows_ + run.theirs + i
                                                   : (run.theirs + i) * columns_ + c)] = from[c];
      }
    }
  }

  std::vector<HubTensor> parts_;
  double (*constant_)(const ModelConfig& model, std::int64_t i) = nullptr;
  ModelConfig model_;  // with the heads of the tensor's stack
  std::int64_t rows_, columns_;
  bool transposed_;
  Shape shape_;
};

std::vector<std::byte> bytes_of(const std::vector<float>& values, DType dtype) {
  std::vector<std::byte> out(values.size() * static_cast<std::size_t>(size_of(dtype)));
  convert_floats(DType::F32, std::as_bytes(std::span(values)), dtype, out);
  return out;
}

/// Parameters are those of the model that the record describes.
void require_shapes(const ModelConfig& model, const ParameterReader& parameters) {
  for (const auto& [name, wanted] : parameter_shapes(model)) {
    const Shape* found = parameters.find(name);
    if (found != nullptr && *found == wanted) continue;
    fail(Fault::Checkpoint, "export: parameter ", name, " is ",
         found == nullptr ? std::string("missing") : to_text(*found),
         ", but its recorded configuration needs ", wanted,
         "; they belong to different models: export the checkpoint as it was saved");
  }
}

std::vector<OutgoingTensor> outgoing(const HubFamily& family, const ModelConfig& model,
                                     const ParameterReader& parameters) {
  std::vector<OutgoingTensor> out;
  std::map<std::string, std::size_t> places;  // in `out`, by name
  for (const HubTensor& tensor : hub_tensors(family, model, HubHeads::OfTask)) {
    const Shape* ours = parameters.find(tensor.ours);
    Shape shape;
    if (ours != nullptr) {
      shape = *ours;
    } else {
      // transformers has biases where this model has none.
      constexpr std::string_view kBias = ".bias", kWeight = ".weight";
      const bool bias = tensor.ours.ends_with(kBias) && !model.bias;
      const std::string weight =
          bias ? tensor.ours.substr(0, tensor.ours.size() - kBias.size()) + std::string(kWeight)
               : "";
      const Shape* of_weight = bias ? parameters.find(weight) : nullptr;
      require(of_weight != nullptr, "export: the model has no parameter ", tensor.ours, ", which ",
              hub_class_of(family, model), " has as ", tensor.theirs);
      shape = {(*of_weight)[0]};
    }
    const auto [known, is_new] = places.emplace(tensor.theirs, out.size());
    if (is_new)
      out.emplace_back(tensor, shape, model);
    else
      out[known->second].add(tensor);
  }
  for (const HubConstant& constant : family.constants) {
    if (!constant.is_written || !is_of(constant.heads, family_task(model).hub_head)) continue;
    out.emplace_back(HubTensor{"", std::string(constant.name)}, constant.shape(model), model);
    out.back().fill(constant.at);
  }
  return out;
}

/// Parameters that no tensor of the class has.
std::vector<std::string> left_out(const HubFamily& family, const ModelConfig& model) {
  auto out = parameter_shapes(model);
  for (const HubTensor& tensor : hub_tensors(family, model, HubHeads::OfTask))
    out.erase(tensor.ours);
  std::vector<std::string> names;
  for (const auto& [name, shape] : out) names.push_back(name);
  return names;
}

/// Of `model`'s adapters, the tensors of PEFT's file.
std::vector<OutgoingTensor> outgoing_adapter(const HubFamily& family, const ModelConfig& model,
                                             const ParameterReader& parameters) {
  std::vector<OutgoingTensor> out;
  for (const HubTensor& tensor : adapter_tensors(family, model))
    if (const Shape* ours = parameters.find(tensor.ours)) out.emplace_back(tensor, *ours, model);
  return out;
}

/// Where each file ends among the tensors.
std::vector<std::size_t> file_ends(const std::vector<OutgoingTensor>& tensors, DType dtype,
                                   std::int64_t most) {
  std::vector<std::size_t> out;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::int64_t more = tensors[i].shape().numel() * size_of(dtype);
    if (bytes > 0 && bytes + more > most) out.push_back(i), bytes = 0;
    bytes += more;
  }
  out.push_back(tensors.size());
  return out;
}

void write_file(const std::string& path, std::span<const OutgoingTensor> tensors,
                const ParameterReader& parameters, DType dtype) {
  std::vector<TensorSource> sources;
  // Tensors are asked for one after another: only the one at hand is held.
  struct Held {
    WholeParameters whole;
    const OutgoingTensor* tensor = nullptr;
    std::vector<std::byte> bytes;
  };
  const auto held = std::make_shared<Held>(Held{WholeParameters(parameters), nullptr, {}});
  for (const OutgoingTensor& tensor : tensors) {
    const auto fill = [&tensor, dtype, held](std::int64_t first, std::span<std::byte> out) {
      if (held->tensor != &tensor) {
        held->bytes.clear();
        held->bytes = bytes_of(tensor.values(held->whole), dtype);
        held->tensor = &tensor;
      }
      std::memcpy(out.data(), held->bytes.data() + first, out.size());
    };
    sources.push_back({tensor.name(), {dtype, tensor.shape(), {}}, fill});
  }
  write_safetensors(path, std::move(sources), {{"format", "pt"}});
}

std::string config_text(const HubFamily& family, const ModelConfig& model,
                        const SavePretrained& how) {
  HubJson out = HubJson::object();
  if (!how.config.empty()) out = HubConfig(how.config, "config.json of the checkpoint").json();
  if (out.contains("model_type") && out["model_type"] != family.model_type)
    out = HubJson::object();  // keys of another program
  out["architectures"] = {std::string(hub_class_of(family, model))};
  out["model_type"] = std::string(family.model_type);
  write_keys(family.keys, model, out);
  family.write(model, out);
  if (reads_field(model, "classes")) write_labels(model.classes, how.labels, out);
  // transformers takes labels for one of several, and a single one for a number, unless this says
  // otherwise.
  out.erase("problem_type");
  const FamilyTask& task = family_task(model);
  const FamilyTask* const usual = find_hub_task(family, task.hub_head, "");  // the library's row
  if (!task.problem_type.empty() &&
      (usual == nullptr || usual->name != task.name || model.classes == 1))
    out["problem_type"] = std::string(task.problem_type);
  if (how.pad_token && family.ends_by_padding && has_head(model, TaskHead::SequenceClassification))
    out["pad_token_id"] = *how.pad_token;
  out.erase("torch_dtype");  // that of version 4
  out["dtype"] = how.dtype == DType::F32    ? "float32"
                 : how.dtype == DType::BF16 ? "bfloat16"
                                            : "float16";
  return out.dump(2) + "\n";
}

/// Names of the files in a folder; none where it is not there.
std::vector<std::string> files_of(const fs::path& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (const fs::path& entry : entries_of(folder, error)) out.push_back(entry.filename().string());
  return out;
}

/// The file of some of the tensors: model-00001-of-00003.safetensors
std::string shard_name(std::size_t number, std::size_t count) {
  return format("model-%05zu-of-%05zu.safetensors", number, count);
}
bool is_shard_name(std::string_view name) {
  const std::string like = shard_name(0, 0);
  return std::ranges::equal(name, like, [](char is, char digit) {
    return digit == '0' ? is >= '0' && is <= '9' : is == digit;
  });
}

/// A file that transformers, or an export, writes for a model. What stayed of an earlier model
/// would be read as this one's, and what a killed export left is of no use.
bool is_of_export(std::string_view name) {
  name = name.substr(0, name.find(".partial-"));
  constexpr std::string_view kOfModel[] = {
      kHubConfigFile,    kHubWeights,        kHubIndex,         "generation_config.json",
      kHubAdapterConfig, kHubAdapterWeights, kHubImageProcessor};
  return std::ranges::find(kOfModel, name) != std::end(kOfModel) || is_shard_name(name) ||
         tokenizer::is_tokenizer_file(name) || is_of_sentences(name);
}

/// Errors: Fault::Usage: an export is there, and is not to be replaced.
void require_new(const std::string& folder, const SavePretrained& how) {
  for (const auto& entry : files_of(folder))
    require(how.overwrite || !is_of_export(entry), "export: '", (fs::path(folder) / entry).string(),
            "' exists; give another --output, or --overwrite");
}

}  // namespace

std::vector<std::string> save_pretrained(const std::string& folder, const ModelConfig& model,
                                         const ParameterReader& parameters,
                                         const SavePretrained& how) {
  if (model.lora.rank > 0)
    return save_pretrained(folder, without_adapters(model), merged(model, parameters), how);
  require(how.dtype == DType::F32 || how.dtype == DType::BF16 || how.dtype == DType::F16,
          "export: weights are written as f32, bf16 or f16, not ", how.dtype);
  const HubFamily& family = family_to_write(model);
  require_shapes(model, parameters);
  const std::string config = config_text(family, model, how);  // says what the family lacks
  const std::vector<OutgoingTensor> tensors = outgoing(family, model, parameters);
  const std::vector<std::size_t> ends = file_ends(tensors, how.dtype, how.most_file_bytes);
  require_new(folder, how);
  StagedFolder staged(folder);
  const fs::path at = staged.path();
  HubJson map = HubJson::object();
  std::int64_t bytes = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const std::string name = ends.size() == 1 ? kHubWeights : shard_name(i + 1, ends.size());
    const auto some = std::span(tensors).subspan(begin, ends[i] - begin);
    write_file((at / name).string(), some, parameters, how.dtype);
    for (const OutgoingTensor& tensor : some) {
      map[tensor.name()] = name;
      bytes += tensor.shape().numel() * size_of(how.dtype);
    }
    begin = ends[i];
  }
  if (ends.size() > 1) {
    const HubJson index = {{"metadata", {{"total_size", bytes}}}, {"weight_map", map}};
    write_atomically((at / kHubIndex).string(), index.dump(2) + "\n");
  }
  for (const auto& [name, file] : how.tokenizer) write_atomically((at / name).string(), file);
  if (has_head(model, TaskHead::Body)) {
    for (const auto& [name, file] : sentence_modules(model)) {
      fs::create_directories((at / name).parent_path());
      write_atomically((at / name).string(), file);
    }
  }
  if (!how.image_processor.empty())
    write_atomically(
        (at / kHubImageProcessor).string(),
        image_processor_json(parse_image_processor(how.image_processor, model.image_size),
                             model.image_channels));
  write_atomically((at / kHubConfigFile).string(), config);
  staged.commit(is_of_export, kHubConfigFile);
  return left_out(family, model);
}

void save_adapter(const std::string& folder, const ModelConfig& model,
                  const ParameterReader& trained, const std::string& base,
                  const SavePretrained& how) {
  const HubFamily& family = family_to_write(model);
  const ParameterReader parameters = with_lengths(model, trained);
  require_shapes(model, parameters);
  const std::vector<OutgoingTensor> tensors = outgoing_adapter(family, model, parameters);
  require_new(folder, how);
  StagedFolder staged(folder);
  const fs::path at = staged.path();
  write_file((at / kHubAdapterWeights).string(), tensors, parameters, how.dtype);
  for (const auto& [name, file] : how.tokenizer) write_atomically((at / name).string(), file);
  write_atomically((at / kHubAdapterConfig).string(), adapter_config_text(family, model, base));
  staged.commit(is_of_export, kHubAdapterConfig);
}

bool has_pretrained_format(const ModelConfig& model) {
  const HubFamily* const family = hub_family_of(model.family);
  return family != nullptr && !family->only_read;
}

std::map<std::string, HostTensor, std::less<>> pretrained_tensors(
    const ModelConfig& model, const ParameterReader& parameters) {
  if (model.lora.rank > 0)
    return pretrained_tensors(without_adapters(model), merged(model, parameters));
  const HubFamily& family = family_to_write(model);
  require_shapes(model, parameters);
  std::map<std::string, HostTensor, std::less<>> out;
  WholeParameters whole(parameters);
  for (const OutgoingTensor& tensor : outgoing(family, model, parameters))
    out.emplace(tensor.name(), HostTensor::of(tensor.shape(), tensor.values(whole)));
  return out;
}

}  // namespace tessera
