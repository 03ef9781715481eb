#include "tessera/plan/block_use.h"

#include <algorithm>
#include <map>
#include <string>

#include "tessera/base/index.h"
#include "tessera/passes/place_chunks.h"

namespace tessera {

namespace {

class BlockUses {
 public:
  BlockUses(const std::vector<Region>& regions, const ProgramValues& values)
      : regions_(regions), values_(values) {
    for (const Region& region : regions) {
      if (region.kind != RegionKind::Forward) continue;
      for (const Node& node : region.graph.nodes()) {
        if (!node.op->traits.leaf) of(node.block);
      }
    }
  }

  std::vector<BlockUse> run(const ProgramPlan& program) {
    for (const Buffer& buffer : values_.buffers()) count_kept(buffer);
    for (const RegionPlan& region : program.regions) {
      const auto times = static_cast<double>(in_loop(region.kind) ? program.microbatches : 1);
      for (const Call& call : region.calls) {
        if (!call.recomputed || call.kernel == nullptr) continue;
        BlockUse& block = of(call.block);
        block.recomputed_flops += call.flops * times;
        ++block.recomputed_ops[std::string(call.op->name)];
      }
    }
    return std::move(blocks_);
  }

 private:
  BlockUse& of(std::string_view path) {
    const std::string block(unit_of(path));
    const auto [found, fresh] = index_.try_emplace(block, blocks_.size());
    if (fresh) blocks_.push_back({block, {}, 0, {}});
    return blocks_[found->second];
  }

  RegionKind kind(int region) const { return regions_[at(region)].kind; }

  bool is_kept(const StoredValue& value) const {
    return value.kind == StoredValue::Kind::Computed && kind(value.region) == RegionKind::Forward &&
           std::ranges::any_of(value.uses, [&](const ValueUse& use) {
             return kind(use.region) == RegionKind::Backward ||
                    kind(use.region) == RegionKind::Weights;
           });
  }

  void count_kept(const Buffer& buffer) {
    if (buffer.home != Buffer::Home::Work) return;
    for (const int v : buffer.values) {
      const StoredValue& value = values_.values()[at(v)];
      if (!is_kept(value)) continue;
      const Node& maker = regions_[at(value.region)].graph.node(value.id.node);
      const ValueUse& first = value.uses.front();
      const Node& node = value.received ? regions_[at(first.region)].graph.node(first.node) : maker;
      of(node.block).kept_bytes[buffer.memory] += buffer.bytes;
      return;
    }
  }

  const std::vector<Region>& regions_;
  const ProgramValues& values_;
  std::vector<BlockUse> blocks_;
  std::map<std::string, std::size_t> index_;
};

}  // namespace

std::vector<BlockUse> block_uses(const std::vector<Region>& regions, const ProgramValues& values,
                                 const ProgramPlan& program) {
  return BlockUses(regions, values).run(program);
}

}  // namespace tessera
