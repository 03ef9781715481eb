#pragma once
/// The tensors of a Hugging Face folder: one file of safetensors, or several and an index.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/files/safetensors.h"
#include "tessera/pretrained/hub/packed_floats.h"

namespace tessera {

inline constexpr const char *kHubWeights = "model.safetensors",
                            *kHubIndex = "model.safetensors.index.json",
                            *kHubConfigFile = "config.json";

/// By name, the file that an index gives each tensor: names of files beside it. `path` is for
/// messages. Errors: Fault::Checkpoint.
std::map<std::string, std::string> parse_hub_index(std::string_view json, const std::string& path);

/// The names, or the first of them and how many more.
std::string some_of(const std::vector<std::string>& names);

class HubWeights {
 public:
  /// Whether there is a file of weights or an index of several.
  static bool are_in(const std::string& folder);
  /// Errors: Fault::Checkpoint: no weights that are read here; a damaged file; a file that an index
  /// names and that is missing.
  static HubWeights open(const std::string& folder);

  /// Of one file. Errors: likewise.
  static HubWeights of_file(const std::string& path);

  HubWeights() = default;
  bool empty() const { return tensors_.empty(); }
  /// By name; the type is that of the file.
  std::vector<std::string> names() const;
  const StoredTensor* find(std::string_view name) const;
  /// Elements of a tensor from the element `first` on, as f32. Errors: one that has no floats.
  void read(std::string_view name, std::int64_t first, std::span<float> out) const;
  /// The file of a tensor, for messages.
  const std::string& file_of(std::string_view name) const;
  /// Names of an index that no file has.
  const std::vector<std::string>& notices() const { return notices_; }

 private:
  struct Place {
    std::size_t file;
    const StoredTensor* tensor;
    const PackedFloats* packed = nullptr;  // what it is read from
  };
  /// A tensor in 4 bits, and what it is called without them.
  struct Packed {
    StoredTensor seen;
    PackedFloats from;
  };
  const Place& at(std::string_view name) const;
  /// `in_index`: in which file an index has each tensor.
  void add_file(const std::string& path, const std::map<std::string, std::string>& in_index = {});
  /// NAME_blocks and NAME_scales become NAME. Errors: PackedFloats'; one without the other.
  void join_packed();

  std::vector<std::unique_ptr<const SafetensorsFile>> files_;
  std::vector<std::unique_ptr<const Packed>> packed_;
  std::map<std::string, Place, std::less<>> tensors_;
  std::vector<std::string> notices_;
};

}  // namespace tessera
