#include <algorithm>

#include "tessera/tokenizers/vocabulary.h"

namespace tessera {

namespace {

constexpr std::size_t kMostBefore = 32;  // ids of a prompt that the next text depends on

}  // namespace

TextStream::TextStream(const Vocabulary& vocabulary, std::span<const std::int32_t> before)
    : vocabulary_(vocabulary) {
  if (vocabulary.made_elsewhere() == nullptr) return;
  const auto last = before.last(std::min(before.size(), kMostBefore));
  ids_.assign(last.begin(), last.end());
  reported_ = ids_.size();
}

std::string TextStream::add(std::int32_t id) {
  if (vocabulary_.made_elsewhere() == nullptr) return vocabulary_.decode({&id, 1});
  ids_.push_back(id);
  const std::string all = vocabulary_.decode(ids_);
  // A character whose bytes are not all there is U+FFFD until they are.
  return all.ends_with("\uFFFD") && ids_.size() - reported_ < 4 ? "" : rest();
}

std::string TextStream::rest() {
  if (vocabulary_.made_elsewhere() == nullptr || reported_ == ids_.size()) return "";
  const std::string before = vocabulary_.decode(std::span(ids_).first(reported_));
  const std::string all = vocabulary_.decode(ids_);
  // What was told of the ids before is the beginning of all, or, where a decoder changes its mind,
  // something as long.
  std::string out = all.size() > before.size() ? all.substr(before.size()) : "";
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(reported_));
  reported_ = ids_.size();
  return out;
}

}  // namespace tessera
