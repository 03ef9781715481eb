#pragma once
/// A hash of parts of a graph, as they are met: what is equal hashes equal.

#include <bit>
#include <cstdint>
#include <string_view>

#include "tessera/ir/graph.h"

namespace tessera {

class Hasher {
 public:
  /// Where text holds `path`, the path of a block, any other path counts as equal.
  explicit Hasher(std::string_view path = {}) : path_(path) {}

  void add(std::uint64_t x) { hash_ = (std::rotl(hash_, 23) ^ x) * 0x9E3779B97F4A7C15; }
  void add(std::string_view line);
  void add(ValueId value);
  void add(const AttrValue& value);
  void add(const Result& result);
  void add(const Placement& placement);
  /// All of a node but what it mentions.
  void add_node(const Node& node);
  std::uint64_t value() const { return hash_; }

 private:
  std::string_view path_;
  std::uint64_t hash_ = 0;
};

}  // namespace tessera
