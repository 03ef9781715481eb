#pragma once
/// Blocks: the repeated parts of a model, recognised by the number in their paths ("layers.7").
///
/// Isomorphic blocks are found by a structural hash and proven by exact comparison, so that an
/// expensive decision is made once per class, and the text form prints a class once.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tessera/ir/graph.h"

namespace tessera {

/// The nodes of one block, in order.
struct Block {
  std::string path;
  std::vector<NodeId> nodes;
  friend bool operator==(const Block&, const Block&) = default;
};

/// Blocks that are the same but for their paths, stages, places in the source, and the values that
/// they read from outside. The i-th nodes of all blocks of a class correspond.
struct BlockClass {
  std::vector<Block> blocks;
};

/// All blocks of the graph by class, in order of their first nodes; nodes outside of blocks are
/// in no class.
std::vector<BlockClass> block_classes(const Graph& graph, int depth = 1);

/// The block that contains `path`: up to and including its `depth`-th numeric component; empty
/// where there is none.
std::string_view block_of(std::string_view path, int depth = 1);

// How blocks are compared and repeated.

/// The values of other nodes that the block mentions (as operands, in cotangent, like and
/// remat_of), in order of first mention.
ValueIds outside_values(const Graph& graph, const Block& block);

/// Equal for blocks of one class.
std::uint64_t structural_hash(const Graph& graph, const Block& block);

/// Carries what is said of one block over to another: paths and ids change, all else stays.
class Carry {
 public:
  /// `reads` are the outside values of both blocks; those of `from` that are not listed are an
  /// Error when met.
  Carry(const Block& from, const Block& to, const ValueIds& from_reads, const ValueIds& to_reads);

  Node operator()(Node node) const;
  State operator()(State state) const;
  Output operator()(Output output) const;

 private:
  ValueId carry(ValueId value) const;
  NodeId carry(NodeId node) const { return carry(ValueId{node, 0}).node; }
  std::string carry(std::string_view line) const;
  std::shared_ptr<const Graph> carry(const std::shared_ptr<const Graph>& graph) const;
  void rename(Node& node) const;

  std::string from_, to_;
  std::unordered_map<NodeId, NodeId> nodes_;
  std::map<ValueId, ValueId> reads_;
};

/// `line` with the path `from` replaced by `to`, where it is a whole path or in front of
/// one: "layers.1" in "layers.1.w" and "grad layers.1", not in "layers.10" or "old.layers.1".
std::string replace_path(std::string_view line, std::string_view from, std::string_view to);

}  // namespace tessera
