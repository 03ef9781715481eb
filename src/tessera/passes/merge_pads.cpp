#include "tessera/passes/merge_pads.h"

#include <algorithm>
#include <map>
#include <optional>

#include "tessera/ops/elementwise.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/passes/rewrite.h"

namespace tessera {

namespace {

struct Piece {
  std::int64_t start = 0, size = 0;
  ValueId value;
};

/// A value as pieces along one dim, zeros elsewhere.
struct Pieces {
  int dim = 0;
  std::vector<Piece> list;  // by start, disjoint
};

class PadMerger {
 public:
  explicit PadMerger(const Graph& graph) : rewrite_(graph), users_(graph) {}

  Graph run() {
    const Graph& from = rewrite_.from();
    for (NodeId id = 0; id < from.size(); ++id) {
      std::optional<Pieces> pieces = pieces_of(id);
      if (pieces && pieces->list.size() > 1 && tiles(id, *pieces)) {
        concatenate(id, *pieces);
      } else {
        rewrite_.copy(id);
        if (pieces) known_.emplace(id, std::move(*pieces));
      }
    }
    return rewrite_.finish();
  }

 private:
  std::optional<Pieces> pieces_of(NodeId id) const {
    const Graph& from = rewrite_.from();
    const Node& node = from.node(id);
    if (node.op == &kPad) {
      const OpCall call = from.call(id);
      if (call.integer("step") != 1) return std::nullopt;
      const int dim = static_cast<int>(call.integer("dim"));
      return Pieces{dim, {{call.integer("start"), call.in(0).shape[dim], node.inputs[0]}}};
    }
    if (node.op != &kAdd) return std::nullopt;
    const auto a = known_.find(node.inputs[0].node), b = known_.find(node.inputs[1].node);
    if (a == known_.end() || b == known_.end() || a->second.dim != b->second.dim ||
        from.type(node.inputs[0]) != from.type(node.inputs[1]) || !read_once(a->first) ||
        !read_once(b->first)) {
      return std::nullopt;
    }
    Pieces out = a->second;
    out.list.insert(out.list.end(), b->second.list.begin(), b->second.list.end());
    std::sort(out.list.begin(), out.list.end(),
              [](const Piece& x, const Piece& y) { return x.start < y.start; });
    for (std::size_t i = 1; i < out.list.size(); ++i) {
      if (out.list[i - 1].start + out.list[i - 1].size > out.list[i].start) return std::nullopt;
    }
    return out;
  }

  bool read_once(NodeId id) const { return users_(id).size() == 1; }

  bool tiles(NodeId id, const Pieces& pieces) const {
    std::int64_t end = 0;
    for (const Piece& piece : pieces.list) {
      if (piece.start != end) return false;
      end += piece.size;
    }
    return end == rewrite_.from().node(id).type().shape[pieces.dim];
  }

  void concatenate(NodeId id, const Pieces& pieces) {
    Node node = rewrite_.from().node(id);
    node.op = &kConcat;
    node.attrs = {std::int64_t{pieces.dim}};
    node.like = node.remat_of = -1;
    if (node.cotangent) node.cotangent->of = rewrite_(node.cotangent->of).id();
    ValueIds inputs;
    for (const Piece& piece : pieces.list) inputs.push_back(rewrite_(piece.value).id());
    rewrite_.map({id, 0}, rewrite_.to().copy(std::move(node), std::move(inputs))[0]);
  }

  Rewrite rewrite_;
  Users users_;
  std::map<NodeId, Pieces> known_;
};

}  // namespace

Graph merge_pads(const Graph& graph) { return PadMerger(graph).run(); }

}  // namespace tessera
