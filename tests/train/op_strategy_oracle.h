#pragma once
/// What strategies of single ops are legal, from the rules of the ops alone: written a second time,
/// to check the product.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tessera/base/text.h"
#include "tessera/ir/graph.h"
#include "tessera/shard/op_shard.h"

namespace tessera::test {

inline constexpr std::int64_t kDevices = 8;
inline constexpr const char* kProduct = "does not divide 8 devices";

/// How often each factor is split, and all that is wrong, in words that the refusal must have in
/// one of the lines about the op.
struct Verdict {
  std::vector<std::string> wrong;
  std::map<int, std::int64_t> splits;
};

class Oracle {
 public:
  Oracle(const Graph& graph, NodeId id)
      : node_(graph.node(id)), rule_(graph.factors(id)), graph_(graph) {}

  /// Factors that an axis may cut.
  bool cuttable(int f) const {
    const FactorKind kind = rule_.list[at(f)].kind;
    if (kind == FactorKind::Stat) return node_.op->expand != nullptr;
    return kind == FactorKind::Pass || kind == FactorKind::Max || kind == FactorKind::Min;
  }

  /// Operands that are cut so, per factor.
  Splits write(const std::map<int, std::int64_t>& factors) const {
    Splits out;
    for (const Factors::Dims& dims : rule_.ins) {
      std::vector<std::int64_t>& operand = out.emplace_back();
      for (const std::vector<int>& fs : dims) {
        std::int64_t n = 1;
        for (const int f : fs) n *= factors.contains(f) ? factors.at(f) : 1;
        operand.push_back(n);
      }
    }
    return out;
  }

  Verdict judge(const Splits& ins) const {
    Verdict out;
    bool counts = true;
    for (std::size_t i = 0; i < rule_.ins.size(); ++i) {
      if (i >= ins.size() && rule_.ins[i].empty()) continue;
      if (i < ins.size() && ins[i].size() == rule_.ins[i].size()) continue;
      counts = false;
      out.wrong.push_back(i < ins.size() ? text("strategy of input ", i, " has ", ins[i].size())
                                         : text("input ", i, " of shape"));
    }
    if (!counts) return out;
    for (std::size_t i = 0; i < ins.size(); ++i) {
      for (std::size_t d = 0; d < ins[i].size(); ++d) {
        if (!read(i, d, ins[i][d], out)) out.wrong.push_back(text("dim ", d, " of input ", i));
      }
    }
    if (!out.wrong.empty()) return out;
    for (std::size_t r = 0; r < rule_.outs.size(); ++r) {
      for (std::size_t d = 0; d < rule_.outs[r].size(); ++d) {
        if (!one_run(rule_.outs[r][d], out)) out.wrong.push_back(text("dim ", d, " of result ", r));
      }
    }
    std::int64_t ranks = 1;
    for (const auto& [f, n] : out.splits) ranks *= n;
    if (kDevices % ranks != 0) out.wrong.push_back(kProduct);
    return out;
  }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  /// The split of a dim as splits of its factors: those in front are cut to the end, one in part.
  bool read(std::size_t i, std::size_t d, std::int64_t n, Verdict& out) const {
    if (n < 1 || graph_.type(node_.inputs[i]).shape[static_cast<int>(d)] % n != 0) return false;
    for (const int f : rule_.ins[i][d]) {
      const std::int64_t size = rule_.list[at(f)].size;
      const std::int64_t here = n >= size ? size : n;
      if (size % here != 0 || n % here != 0) return false;
      n /= here;
      if (here > 1 && !cuttable(f)) return false;
      if (out.splits.emplace(f, here).first->second != here) return false;
    }
    return n == 1;
  }

  bool one_run(const std::vector<int>& fs, const Verdict& v) const {
    bool ended = false;
    for (const int f : fs) {
      const std::int64_t n = v.splits.contains(f) ? v.splits.at(f) : 1;
      if (ended && n > 1) return false;
      ended = ended || n < rule_.list[at(f)].size;
    }
    return true;
  }

  const Node& node_;
  Factors rule_;
  const Graph& graph_;
};

}  // namespace tessera::test
