#include "tessera/pretrained/hub/hub_weights.h"

#include <algorithm>
#include <filesystem>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/pretrained/hub/hub_config.h"
#include "tessera/pretrained/hub/hub_folder.h"

namespace tessera {

namespace fs = std::filesystem;

std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(kMost, names.size()); ++i)
    shown.push_back(printable(names[i]));
  return names.size() > kMost ? text(join(shown), " and ", names.size() - kMost, " more")
                              : join(shown);
}

std::map<std::string, std::string> parse_hub_index(std::string_view json, const std::string& path) {
  const nlohmann::json index = parse_hub_map(json, path, Fault::Checkpoint);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    fail(Fault::Checkpoint, path, " has no weight_map; copy it again");
  std::map<std::string, std::string> out;
  for (const auto& [name, file] : index["weight_map"].items()) {
    std::string at = file.is_string() ? file.get<std::string>() : "";
    while (at.starts_with("./")) at.erase(0, 2);
    if (at.empty() || at.find('/') != std::string::npos || at == "." || at == "..")
      fail(Fault::Checkpoint, path, ": the file of tensor '", printable(name), "' is ",
           printable(file.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)),
           "; it must be the name of a file beside it");
    out[name] = at;
  }
  return out;
}

bool HubWeights::are_in(const std::string& folder) {
  return is_named_in(folder, kHubWeights) || is_named_in(folder, kHubIndex);
}

HubWeights HubWeights::of_file(const std::string& path) {
  HubWeights out;
  out.add_file(path);
  return out;
}

HubWeights HubWeights::open(const std::string& folder) {
  const fs::path at = folder;
  HubWeights out;
  if (!are_in(folder)) refuse_without_weights(folder);
  if (is_named_in(folder, kHubWeights)) {
    out.add_file((at / kHubWeights).string());
    out.join_packed();
    return out;
  }
  const std::string index = (at / kHubIndex).string();
  const std::string json = read_file(index, Fault::Checkpoint);
  require_no_pointer(json, index, Fault::Checkpoint);
  const std::map<std::string, std::string> indexed = parse_hub_index(json, index);
  std::map<std::string, std::size_t> files;  // and how many tensors each is to have
  for (const auto& [name, file] : indexed) ++files[file];
  for (const auto& [file, count] : files) {
    std::error_code ignored;
    if (!fs::exists(at / file, ignored))
      fail(Fault::Checkpoint, (at / file).string(), " is missing, in which ", index, " has ", count,
           " tensors; download it");
    out.add_file((at / file).string(), indexed);
  }
  std::vector<std::string> lacking;
  for (const auto& [name, file] : indexed) {
    if (!out.tensors_.contains(name)) lacking.push_back(printable(name));
  }
  if (!lacking.empty())
    out.notices_.push_back(text(index, " names tensors that no file has: ", some_of(lacking)));
  out.join_packed();
  return out;
}

void HubWeights::join_packed() {
  std::vector<std::string> names;
  for (const auto& [name, place] : tensors_) {
    if (name.ends_with(kBlocksName) && place.tensor->other_dtype == "U8")
      names.push_back(name.substr(0, name.size() - std::string_view(kBlocksName).size()));
  }
  for (const std::string& name : names) {
    const Place of = at(name + kBlocksName);
    const auto by = tensors_.find(name + kScalesName);
    if (by == tensors_.end())
      fail(Fault::Checkpoint, files_[of.file]->path(), ": tensor '", printable(name), kBlocksName,
           "' is without '", printable(name), kScalesName, "'; download the folder again");
    Packed packed = {
        {name, {}},
        {files_[of.file].get(), files_[by->second.file].get(), of.tensor, by->second.tensor}};
    packed.from.require_fit();
    packed.seen.type = {DType::BF16, packed.from.shape(), {}};
    packed.seen.end = of.tensor->bytes() + by->second.tensor->bytes();
    packed_.push_back(std::make_unique<const Packed>(std::move(packed)));
    tensors_.erase(by);
    tensors_.erase(name + kBlocksName);
    tensors_.insert_or_assign(name, Place{of.file, &packed_.back()->seen, &packed_.back()->from});
  }
}

void HubWeights::add_file(const std::string& path,
                          const std::map<std::string, std::string>& in_index) {
  {
    const InputFile file(path, Fault::Checkpoint);
    std::string begin(static_cast<std::size_t>(std::min<std::int64_t>(40, file.size())), '\0');
    file.read(0, std::as_writable_bytes(std::span(begin)));
    require_no_pointer(begin, path, Fault::Checkpoint);
  }
  files_.push_back(std::make_unique<const SafetensorsFile>(path, OtherDTypes::Keep));
  const std::size_t file = files_.size() - 1;
  const std::string here = fs::path(path).filename().string();
  for (const StoredTensor& tensor : files_.back()->tensors()) {
    const auto indexed = in_index.find(tensor.name);
    const auto [at, is_new] = tensors_.emplace(tensor.name, Place{file, &tensor});
    if (is_new) continue;
    if (indexed == in_index.end())
      fail(Fault::Checkpoint, "tensor '", printable(tensor.name), "' is in ",
           files_[at->second.file]->path(), " and in ", path, "; download them again");
    if (indexed->second == here) at->second = {file, &tensor};
  }
}

std::vector<std::string> HubWeights::names() const {
  std::vector<std::string> out;
  for (const auto& [name, place] : tensors_) out.push_back(name);
  return out;
}

const StoredTensor* HubWeights::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : found->second.tensor;
}

const HubWeights::Place& HubWeights::at(std::string_view name) const {
  const auto found = tensors_.find(name);
  check(found != tensors_.end(), "no tensor ", name);
  return found->second;
}

const std::string& HubWeights::file_of(std::string_view name) const {
  return files_[at(name).file]->path();
}

void HubWeights::read(std::string_view name, std::int64_t first, std::span<float> out) const {
  const Place& place = at(name);
  if (place.packed != nullptr) return place.packed->read(first, out);
  files_[place.file]->read_floats(*place.tensor, first, out);
}

}  // namespace tessera
