#include "tessera/pretrained/hub/hub_weights.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"
#include "tessera/pretrained/hub/hub_config.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

/// Also of a link that leads nowhere, as where a download was removed: opening it says so.
bool is_named(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

/// Pickle can run any code, so it is not read.
void refuse_pickle(const fs::path& folder) {
  for (const char* name : {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    if (!is_named(folder / name)) continue;
    fail(Fault::Checkpoint, (folder / name).string(),
         " holds weights as pickle, which can run any program and is not read here; make "
         "safetensors of it: python3 -c \"from transformers import AutoModel as M; "
         "M.from_pretrained('",
         folder.string(), "').save_pretrained('NEW_FOLDER')\"");
  }
}

}  // namespace

std::map<std::string, std::string> parse_hub_index(std::string_view json, const std::string& path) {
  const HubJson index = parse_hub_json(json, path, Fault::Checkpoint);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    fail(Fault::Checkpoint, path, " has no weight_map of names and files; copy it again");
  std::map<std::string, std::string> out;
  for (const auto& [name, file] : index["weight_map"].items()) {
    const std::string at = file.is_string() ? file.get<std::string>() : "";
    if (at.empty() || at.find('/') != std::string::npos || at == "." || at == "..")
      fail(Fault::Checkpoint, path, ": the file of tensor '", printable(name), "' is ",
           printable(file.dump(-1, ' ', true, HubJson::error_handler_t::replace)),
           "; it must be the name of a file beside it");
    out[name] = at;
  }
  return out;
}

HubWeights HubWeights::open(const std::string& folder) {
  const fs::path at = folder;
  HubWeights out;
  if (is_named(at / kHubWeights)) {
    out.add_file((at / kHubWeights).string());
    return out;
  }
  if (!is_named(at / kHubIndex)) {
    refuse_pickle(at);
    return out;
  }
  const std::string index = (at / kHubIndex).string();
  const std::map<std::string, std::string> told =
      parse_hub_index(read_file(index, Fault::Checkpoint), index);
  std::map<std::string, std::size_t> files;  // and how many tensors each is to have
  for (const auto& [name, file] : told) ++files[file];
  for (const auto& [file, count] : files) {
    std::error_code ignored;
    if (!fs::exists(at / file, ignored))
      fail(Fault::Checkpoint, (at / file).string(), " is missing, in which ", index, " has ", count,
           " tensors; download it");
    out.add_file((at / file).string());
  }
  for (const auto& [name, file] : told) {
    const auto found = out.tensors_.find(name);
    const bool there = found != out.tensors_.end() &&
                       fs::path(out.files_[found->second.file]->path()).filename() == file;
    if (!there)
      fail(Fault::Checkpoint, (at / file).string(), " lacks tensor '", printable(name), "', which ",
           index, " says it has; download both again");
  }
  for (const auto& [name, place] : out.tensors_) {
    if (!told.contains(name))
      fail(Fault::Checkpoint, out.files_[place.file]->path(), " has tensor '", printable(name),
           "', of which ", index, " knows nothing; download both again");
  }
  return out;
}

void HubWeights::add_file(const std::string& path) {
  files_.push_back(std::make_unique<const SafetensorsFile>(path));
  const std::size_t file = files_.size() - 1;
  for (const StoredTensor& tensor : files_.back()->tensors()) {
    const auto [at, is_new] = tensors_.emplace(tensor.name, Place{file, &tensor});
    if (!is_new)
      fail(Fault::Checkpoint, "tensor '", printable(tensor.name), "' is in ",
           files_[at->second.file]->path(), " and in ", path, "; download them again");
  }
}

std::vector<std::string> HubWeights::names() const {
  std::vector<std::string> out;
  for (const auto& [name, place] : tensors_) out.push_back(name);
  return out;
}

const TensorType* HubWeights::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second.tensor->type;
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
  files_[place.file]->read_floats(*place.tensor, first, out);
}

}  // namespace tessera
