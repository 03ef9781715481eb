#pragma once
/// Which of many strings a text begins with.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::tokenizer {

/// A trie over bytes; children of a node stand side by side, sorted.
class ByteTrie {
 public:
  using Keys = std::vector<std::pair<std::string_view, std::int32_t>>;
  ByteTrie() : ByteTrie(Keys()) {}
  /// Of equal keys the value of the first is kept; empty keys are passed over.
  explicit ByteTrie(Keys keys);

  /// Calls found(length, value) of each key that `text` begins with, shortest first.
  template <typename Found>
  void prefixes(std::string_view text, const Found& found) const {
    if (text.empty()) return;
    std::int32_t node = roots_[static_cast<unsigned char>(text[0])];
    for (std::size_t size = 1; node >= 0; ++size) {
      const Node& at = nodes_[static_cast<std::size_t>(node)];
      if (at.value >= 0) found(size, at.value);
      if (size == text.size()) return;
      node = child(at, static_cast<unsigned char>(text[size]));
    }
  }
  /// A key begins with this byte.
  bool begins(char byte) const { return roots_[static_cast<unsigned char>(byte)] >= 0; }

 private:
  struct Node {
    std::int32_t first = 0, value = -1;
    std::uint16_t children = 0;
    unsigned char label = 0;
  };
  std::int32_t child(const Node& of, unsigned char label) const {
    const Node* const begin = nodes_.data() + of.first;
    const Node* const end = begin + of.children;
    const Node* const found = std::lower_bound(
        begin, end, label, [](const Node& node, unsigned char to) { return node.label < to; });
    return found == end || found->label != label ? -1
                                                 : static_cast<std::int32_t>(found - nodes_.data());
  }

  std::vector<Node> nodes_;
  std::array<std::int32_t, 256> roots_{};  // node of the first byte; -1: none
};

}  // namespace tessera::tokenizer
