#include "tessera/pretrained/hub/hub_names.h"

#include <algorithm>
#include <array>
#include <set>

#include "tessera/base/error.h"
#include "tessera/base/printable.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

/// What wrappers of PyTorch put into names: DataParallel, torch.compile, FSDP, checkpointing.
constexpr std::array<std::string_view, 5> kWrappers = {
    "module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_forward_module"};

std::string without_wrappers(const std::string& name) {
  std::vector<std::string> parts = split(name, '.');
  std::erase_if(parts, [](const std::string& part) {
    return std::ranges::find(kWrappers, part) != kWrappers.end();
  });
  return join(parts, ".");
}

/// A name and what files of version 1 call it: gamma and beta of norms.
std::vector<std::string> spellings(std::string_view name) {
  std::vector<std::string> out = {std::string(name)};
  if (name.ends_with(".weight")) out.push_back(text(name.substr(0, name.size() - 6), "gamma"));
  if (name.ends_with(".bias")) out.push_back(text(name.substr(0, name.size() - 4), "beta"));
  return out;
}

/// "a.b." and all that it begins with: "a.b.", "a.", "".
std::vector<std::string> prefixes_of(std::string prefix) {
  std::vector<std::string> out = {prefix};
  while (!prefix.empty()) {
    prefix.pop_back();
    const std::size_t dot = prefix.rfind('.');
    prefix.resize(dot == std::string::npos ? 0 : dot + 1);
    out.push_back(prefix);
  }
  return out;
}

}  // namespace

HubNames::HubNames(const HubFamily& family, const std::vector<HubTensor>& tensors,
                   const HubWeights& weights, const std::string& folder)
    : family_(family) {
  for (const std::string& name : weights.names()) {
    for (const HubSpelling& each : family.spellings) {
      const bool known = std::ranges::any_of(
          spellings_, [&](const HubSpelling& other) { return other.from == each.from; });
      if (!known && name.find(each.from) != std::string::npos) spellings_.push_back(each);
    }
    const auto [at, is_new] = original_.emplace(plain(name), name);
    if (!is_new)
      fail(Fault::Checkpoint, "'", folder, "' has tensors '", printable(at->second), "' and '",
           printable(name), "', which ",
           family_.spellings.empty() ? "differ only in a wrapper's prefix" : "name the same one",
           "; keep one");
  }
  find_prefix(tensors, folder);
}

std::string HubNames::plain(const std::string& name) const {
  std::string out = without_wrappers(name);
  for (const HubSpelling& each : family_.spellings) {
    const std::size_t at = out.find(each.from);
    if (at != std::string::npos) out.replace(at, each.from.size(), each.to);
  }
  return out;
}

std::string_view HubNames::without_prefix(std::string_view theirs) const {
  return theirs.starts_with(family_.prefix) ? theirs.substr(family_.prefix.size()) : theirs;
}

void HubNames::find_prefix(const std::vector<HubTensor>& tensors, const std::string& folder) {
  std::set<std::string, std::less<>> wanted;
  for (const HubTensor& tensor : tensors) {
    if (tensor.heads != TaskHead::None || !tensor.theirs.starts_with(family_.prefix)) continue;
    for (std::string& name : spellings(without_prefix(tensor.theirs)))
      wanted.insert(std::move(name));
  }
  std::map<std::string, std::int64_t> matches;  // by prefix
  for (const auto& [name, original] : original_) {
    for (std::size_t at = 0; at != std::string::npos;) {
      if (wanted.contains(std::string_view(name).substr(at))) ++matches[name.substr(0, at)];
      const std::size_t dot = name.find('.', at);
      at = dot == std::string::npos ? dot : dot + 1;
    }
  }
  if (matches.empty()) {
    std::vector<std::string> theirs, ours;
    for (const auto& [name, original] : original_) theirs.push_back(original);
    for (const HubTensor& tensor : tensors) ours.push_back(tensor.theirs);
    fail(Fault::Checkpoint, "none of the ", theirs.size(), " tensors of '", folder,
         "' belongs to a model of ", family_.model_type, ": it has ", some_of(theirs),
         ", and the model ", some_of(ours), "; give a folder saved by transformers");
  }
  const auto count = [&](const std::string& prefix) {
    const auto found = matches.find(prefix);
    return found == matches.end() ? 0 : found->second;
  };
  const auto most = std::ranges::max_element(
      matches, {}, [](const auto& each) -> std::int64_t { return each.second; });
  for (const std::string& usual : {std::string(family_.prefix), std::string()}) {
    if (2 * count(usual) > most->second) {
      prefix_ = usual;
      return;
    }
  }
  prefix_ = most->first;
  for (const auto& [prefix, matched] : matches) {
    if (prefix != prefix_ && 2 * matched > most->second)
      fail(Fault::Checkpoint, "'", folder, "' has several models of ", family_.model_type,
           ": names begin with '", printable(prefix_), "' and with '", printable(prefix),
           "'; save the right one separately");
  }
}

std::string HubNames::find(std::string_view theirs) const {
  const bool of_head = !theirs.starts_with(family_.prefix);
  std::vector<std::string> prefixes = {prefix_};
  // A head is not in the model without a head, but beside it, or above.
  if (of_head || family_.prefix.empty()) prefixes = prefixes_of(prefix_);
  for (const std::string& name : spellings(without_prefix(theirs))) {
    for (const std::string& prefix : prefixes) {
      const auto found = original_.find(prefix + name);
      if (found != original_.end()) return found->second;
    }
  }
  return "";
}

std::string HubNames::spelt(std::string_view theirs) const {
  if (family_.spellings.empty()) return std::string(theirs);
  std::string out = text(theirs.starts_with(family_.prefix) ? prefix_ : "", without_prefix(theirs));
  for (const HubSpelling& each : spellings_) {
    const std::size_t at = out.find(each.to);
    if (at != std::string::npos) out.replace(at, each.to.size(), each.from);
  }
  return out;
}

std::string HubNames::bare(const std::string& name) const {
  const std::string found = plain(name);
  return found.starts_with(prefix_) ? found.substr(prefix_.size()) : found;
}

}  // namespace tessera
