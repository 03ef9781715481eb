#pragma once
/// Writes a model into a folder from which Hugging Face's transformers loads it.

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/models/config.h"
#include "tessera/tensor/dtype.h"
#include "tessera/tensor/host_tensor.h"
#include "tessera/tensor/shape.h"
#include "tessera/tokenizers/tokenizer.h"

namespace tessera {

/// Our parameters, whatever holds them.
struct ParameterReader {
  /// nullptr: there is none of that name.
  std::function<const Shape*(std::string_view name)> find;
  /// All elements, as f32.
  std::function<void(std::string_view name, std::span<float> out)> read;
};

struct SavePretrained {
  DType dtype = DType::F32;                      // of the weights: f32, bf16 or f16
  std::int64_t most_file_bytes = 5'000'000'000;  // of tensors in a file; a larger one is alone
  std::string config = {};  // config.json that the model came with: keys that we do not know stay
  std::vector<std::string> labels = {};  // of a classifier, by number; empty: they have no names
  /// Padding's id, of a model that finds the end of a text by it; none: as in `config`.
  std::optional<std::int32_t> pad_token = std::nullopt;
  TokenizerFiles tokenizer = {};     // by name, beside the model
  std::string image_processor = {};  // as parse_image_processor reads it; empty: nobody knows it
  bool overwrite = false;            // an earlier export
};

/// Writes config.json, weights and the tokenizer into `folder`, which is made where it is missing.
/// It comes whole (files/staged_folder.h): an earlier export is there until then, and is gone with
/// all its files after; files that are of no export stay. A parameter that biases of models without
/// them would be is zeros; weights have what adapters add. Returns what it leaves out: the model's parameters that transformers'
/// class has none for.
///
/// Errors: Fault::Usage: a family that has no such folders, or sizes that transformers does not
/// know there; files that are there already. Fault::Checkpoint: parameters that are missing or of
/// other shapes than the model's. Fault::Resource: the folder cannot be written.
std::vector<std::string> save_pretrained(const std::string& folder, const ModelConfig& model,
                                         const ParameterReader& parameters,
                                         const SavePretrained& how = {});

/// Writes the adapters of `model`, and the block of its task, which is trained with them, as PEFT's
/// folder: adapter_config.json, which names the model `base`, and adapter_model.safetensors. Errors:
/// likewise; Fault::Usage: adapters that PEFT has not.
void save_adapter(const std::string& folder, const ModelConfig& model,
                  const ParameterReader& parameters, const std::string& base,
                  const SavePretrained& how = {});

/// Whether there is such a folder of models like this one.
bool has_pretrained_format(const ModelConfig& model);
/// The tensors that save_pretrained writes, whole, of f32, by their names there. Errors: as of
/// save_pretrained.
std::map<std::string, HostTensor, std::less<>> pretrained_tensors(
    const ModelConfig& model, const ParameterReader& parameters);

}  // namespace tessera
