#include "tessera/tokenizers/byte_trie.h"

namespace tessera::tokenizer {

ByteTrie::ByteTrie(Keys keys) {
  roots_.fill(-1);
  std::erase_if(keys, [](const auto& key) { return key.first.empty(); });
  std::stable_sort(keys.begin(), keys.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto same = std::unique(keys.begin(), keys.end(),
                                [](const auto& a, const auto& b) { return a.first == b.first; });
  keys.erase(same, keys.end());
  // Nodes level by level: those of one parent are made together.
  struct Range {
    std::size_t begin, end, depth;
    std::int32_t parent;
  };
  std::vector<Range> level = {{0, keys.size(), 0, -1}};
  for (std::size_t next = 0; next < level.size(); ++next) {
    const Range range = level[next];
    std::size_t at = range.begin;
    while (at < range.end && keys[at].first.size() <= range.depth) ++at;  // ends in the parent
    const auto first = static_cast<std::int32_t>(nodes_.size());
    while (at < range.end) {
      const char label = keys[at].first[range.depth];
      std::size_t end = at;
      while (end < range.end && keys[end].first[range.depth] == label) ++end;
      const auto node = static_cast<std::int32_t>(nodes_.size());
      const bool ends = keys[at].first.size() == range.depth + 1;
      nodes_.push_back({0, ends ? keys[at].second : -1, 0, static_cast<unsigned char>(label)});
      if (range.parent < 0) roots_[static_cast<unsigned char>(label)] = node;
      level.push_back({at, end, range.depth + 1, node});
      at = end;
    }
    if (range.parent < 0) continue;
    Node& parent = nodes_[static_cast<std::size_t>(range.parent)];
    parent.first = first;
    parent.children = static_cast<std::uint16_t>(nodes_.size() - static_cast<std::size_t>(first));
  }
}

}  // namespace tessera::tokenizer
