#include "tessera/shard/op_strategy.h"

#include <algorithm>

#include "tessera/base/divisors.h"
#include "tessera/base/index.h"
#include "tessera/ops/index_ops.h"
#include "tessera/ops/matmul.h"
#include "tessera/passes/op_decisions.h"
#include "tessera/shard/repeated_dims.h"

namespace tessera {

namespace {

std::int64_t product(const std::vector<std::int64_t>& numbers) {
  std::int64_t out = 1;
  for (const std::int64_t n : numbers) out *= n;
  return out;
}

class Spreading {
 public:
  Spreading(const Graph& graph, NodeId id, const OpShard& shard, std::int64_t devices)
      : graph_(graph),
        node_(graph.node(id)),
        rule_(graph.factors(id)),
        shard_(shard),
        devices_(devices),
        splits_(rule_.list.size(), 1) {
    out_.node = id;
  }

  OpSpread run() {
    if (shard_.in_layouts.empty()) {
      read_splits();
    } else {
      read_layouts();
    }
    refuse();
    for (const Factors::Dims& dims : rule_.ins) out_.ins.push_back(layout(dims));
    for (std::size_t r = 0; r < rule_.outs.size(); ++r) out_.outs.push_back(layout(rule_.outs[r]));
    read_results();
    refuse();
    return std::move(out_);
  }

 private:
  template <typename... Parts>
  void wrong(const Parts&... parts) {
    reasons_.push_back(text("op '", shard_.ops, "' (", node_.op->name, "): ", parts...));
  }
  void refuse() const {
    require(reasons_.empty(), join(reasons_, "\n"), "\n    strategy ", shard_, " for ",
            node_.op->name, " with rule ", rule_, " on ", devices_, " devices, ",
            describing(graph_, out_.node));
  }

  const Shape& shape(std::size_t operand) const { return graph_.type(node_.inputs[operand]).shape; }

  /// True where the strategies are as many as the operands and as long as these have dims.
  bool fits(std::size_t given, const auto& length_of) {
    if (given > node_.inputs.size()) {
      wrong(given, " strategies for ", node_.inputs.size(), " inputs; give each input one");
      return false;
    }
    bool out = true;
    for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
      const auto ndim = at(shape(i).ndim());
      if (i >= given) {
        if (ndim == 0) continue;
        wrong("input ", i, " of shape ", shape(i), " has no strategy: ", given, " strategies for ",
              node_.inputs.size(), " inputs; give each input one");
        out = false;
      } else if (length_of(i) != ndim) {
        wrong("the strategy of input ", i, " has ", length_of(i), " dims, but its shape ", shape(i),
              " has ", ndim, "; give each dim a number");
        out = false;
      }
    }
    return out;
  }

  void read_splits() {
    if (!fits(shard_.ins.size(), [&](std::size_t i) { return shard_.ins[i].size(); })) return;
    std::vector<std::string> said(rule_.list.size());  // where a factor was split first
    for (std::size_t i = 0; i < shard_.ins.size(); ++i) {
      for (std::size_t d = 0; d < shard_.ins[i].size(); ++d)
        split_dim(i, d, shard_.ins[i][d], said);
    }
    if (reasons_.empty()) keep_runs();
    order_factors();
    std::vector<std::int64_t> used;
    for (const int f : order_) used.push_back(splits_[at(f)]);
    const std::int64_t ranks = product(used);
    if (ranks > devices_ || devices_ % ranks != 0) {
      wrong("its splits make ", ranks, " parts, which does not divide ", devices_,
            " devices; legal products: ", divisors(devices_));
      return;
    }
    const std::int64_t repeat = devices_ / ranks;
    const bool first = repeat > 1 && repeats_first();
    if (first) matrix_.push_back(repeat);
    matrix_.insert(matrix_.end(), used.begin(), used.end());
    if (repeat > 1 && !first) matrix_.push_back(repeat);
    dims_.resize(rule_.list.size());
    for (std::size_t k = 0; k < order_.size(); ++k) {
      const std::size_t place = k + (first ? 1 : 0);
      if (splits_[at(order_[k])] > 1)
        dims_[at(order_[k])] = {static_cast<int>(matrix_.size() - 1 - place)};
    }
  }

  /// The parts of each factor of a dim that is cut in n, major first; none where these do not nest.
  std::vector<std::int64_t> shares(const std::vector<int>& factors, std::int64_t n) const {
    std::vector<std::int64_t> out;
    for (const int f : factors) {
      const std::int64_t size = rule_.list[at(f)].size;
      out.push_back(size > 0 && n % size == 0 ? size : n);  // nothing has any number of parts
      if (size % out.back() != 0) return {};
      n /= out.back();
    }
    return out;
  }

  void wrong_parts(std::size_t i, std::size_t d, std::int64_t n) {
    const std::int64_t size = shape(i)[static_cast<int>(d)];
    const std::vector<int>& factors = rule_.ins[i][d];
    std::vector<std::string> sizes;
    for (const int f : factors) sizes.push_back(text(rule_.list[at(f)].size));
    wrong("dim ", d, " of input ", i, " has size ", size,
          factors.size() > 1 ? text(" (", join(sizes, " x "), ", cut in this order)") : "",
          ", which ", n, " parts do not divide; legal: ", divisors(size, [&](std::int64_t legal) {
            return shares(factors, legal).size() == factors.size();
          }));
  }

  /// The split of a dim, on the factors that it consists of.
  void split_dim(std::size_t i, std::size_t d, std::int64_t n, std::vector<std::string>& said) {
    const std::int64_t size = shape(i)[static_cast<int>(d)];
    const std::vector<int>& factors = rule_.ins[i][d];
    const std::string here = text("dim ", d, " of input ", i);
    if (n < 1) return wrong(here, " is split ", n, " times; it must be at least 1");
    const std::vector<std::int64_t> parts = shares(factors, n);
    if (size % n != 0 || parts.size() != factors.size()) return wrong_parts(i, d, n);
    for (std::size_t k = 0; k < factors.size(); ++k) {
      const Factor& factor = rule_.list[at(factors[k])];
      if (parts[k] > 1 && !may_shard(*node_.op, factor.kind))
        return wrong(here, " (", factor.name, ") must stay whole, but is split ", n,
                     " times; legal: 1");
      std::string& before = said[at(factors[k])];
      if (before.empty()) {
        before = here;
        splits_[at(factors[k])] = parts[k];
      } else if (splits_[at(factors[k])] != parts[k]) {
        return wrong(before, " and ", here, " are the same (", factor.name, "), but are split ",
                     splits_[at(factors[k])], " and ", parts[k], " times; split both alike: legal ",
                     divisors(factor.size));
      }
    }
  }

  /// Leading dims that only a longer operand has come first, then the operands in order.
  void order_factors() {
    const auto take = [&](auto begin, auto end) {
      for (auto dim = begin; dim != end; ++dim) {
        for (const int f : *dim) {
          if (std::find(order_.begin(), order_.end(), f) == order_.end()) order_.push_back(f);
        }
      }
    };
    const auto longest = std::max_element(
        rule_.ins.begin(), rule_.ins.end(),
        [](const Factors::Dims& a, const Factors::Dims& b) { return a.size() < b.size(); });
    if (longest == rule_.ins.end()) return;
    take(longest->begin(), longest->end() - static_cast<std::ptrdiff_t>(rule_.ins[0].size()));
    for (const Factors::Dims& dims : rule_.ins) {
      Factors::Dims ordered = dims;
      if (node_.op == &kMatmul) {  // a transposed first operand has its rows behind what is summed
        std::stable_partition(ordered.begin(), ordered.end(), [&](const std::vector<int>& fs) {
          return !fs.empty() && rule_.has(rule_.outs[0], fs[0]);
        });
      }
      take(ordered.begin(), ordered.end());
    }
  }

  bool repeats_first() const {
    const bool rows_of_table = node_.op == &kGather && std::get<std::int64_t>(node_.attrs[0]) == 0;
    if (!rows_of_table) return false;
    const std::int64_t rows = shard_.ins[1][0];
    return rows != 1 && rows != devices_;
  }

  void read_layouts() {
    const std::vector<TensorLayout>& given = shard_.in_layouts;
    if (!fits(given.size(), [&](std::size_t i) { return given[i].map.size(); })) return;
    if (product(given[0].matrix) != devices_)
      wrong("its layout has ", product(given[0].matrix), " ranks, but there are ", devices_,
            " devices; give it a dim more for ranks that repeat, or one less");
    for (const TensorLayout& layout : given) {
      if (layout.matrix == given[0].matrix && layout.aliases == given[0].aliases) continue;
      return wrong("its layouts are on two matrices, ", given[0], " and ", layout, "; use one");
    }
    for (const std::int64_t size : given[0].matrix) parts_.push_back({size});
    for (std::size_t i = 0; i < given.size(); ++i) {
      for (std::size_t d = 0; d < given[i].map.size(); ++d) {
        std::vector<std::int64_t> sizes;
        for (const int f : rule_.ins[i][d]) sizes.push_back(rule_.list[at(f)].size);
        split_parts(given[i], d, sizes, parts_);
      }
    }
    matrix_ = in_parts(given[0], parts_).matrix;
    aliases_ = in_parts(given[0], parts_).aliases;
    dims_.resize(rule_.list.size());
    std::vector<bool> said(rule_.list.size(), false);
    for (std::size_t i = 0; i < given.size(); ++i) {
      const TensorLayout layout = in_parts(given[i], parts_);
      for (std::size_t d = 0; d < layout.map.size(); ++d)
        lay_dim(i, d, layout.map[d], layout.splits()[d], said);
    }
    for (int d = 0; d < static_cast<int>(matrix_.size()); ++d) {
      const auto uses =
          std::count_if(dims_.begin(), dims_.end(), [&](const std::vector<int>& dims) {
            return std::find(dims.begin(), dims.end(), d) != dims.end();
          });
      if (uses > 1) wrong("'", alias(d), "' splits two different dims of the op; use it for one");
    }
    for (std::size_t f = 0; f < dims_.size(); ++f) {
      for (const int d : dims_[f]) splits_[f] *= matrix_[matrix_.size() - 1 - at(d)];
    }
    if (reasons_.empty()) keep_runs();
  }

  void lay_dim(std::size_t i, std::size_t d, const std::vector<int>& map, std::int64_t n,
               std::vector<bool>& said) {
    const std::int64_t size = shape(i)[static_cast<int>(d)];
    const std::vector<int>& factors = rule_.ins[i][d];
    if (factors.empty() && n == 1) return;
    std::vector<std::vector<int>> shares;  // the dims of the matrix that cut each factor
    std::size_t next = 0;
    for (const int f : factors) {
      std::int64_t left = rule_.list[at(f)].size;
      shares.emplace_back();
      for (; next < map.size(); ++next) {
        const std::int64_t parts = matrix_[matrix_.size() - 1 - at(map[next])];
        if (left % parts != 0) break;
        shares.back().push_back(map[next]);
        left /= parts;
      }
      if (next < map.size() && left > 1) break;
    }
    if (size % n != 0 || next < map.size()) return wrong_parts(i, d, n);
    shares.resize(factors.size());
    for (std::size_t k = 0; k < factors.size(); ++k) {
      const std::size_t f = at(factors[k]);
      const Factor& factor = rule_.list[f];
      if (!shares[k].empty() && !may_shard(*node_.op, factor.kind))
        return wrong("dim ", d, " of input ", i, " (", factor.name, ") must stay whole; use None");
      if (said[f] && dims_[f] != shares[k])
        return wrong("dim ", d, " of input ", i, " (", factor.name,
                     ") is sharded differently in another input; shard both the same way");
      said[f] = true;
      dims_[f] = shares[k];
    }
  }

  /// A shard of a dim that several factors make up is one run of it: behind a factor that is not
  /// cut to the end, none may be cut. A user who splits dims before they are merged may break that.
  void keep_runs() {
    const auto keep = [&](const char* what, std::size_t number, const Factors::Dims& dims) {
      for (std::size_t d = 0; d < dims.size(); ++d) {
        int open = -1;  // the first factor that is not cut to the end
        for (const int f : dims[d]) {
          if (open >= 0 && splits_[at(f)] > 1) {
            const Factor &major = rule_.list[at(open)], &minor = rule_.list[at(f)];
            wrong("dim ", d, " of ", what, " ", number, " is '", major.name, "' of ", major.size,
                  " before '", minor.name, "' of ", minor.size, ", which are split ",
                  splits_[at(open)], " and ", splits_[at(f)], " times; legal: '", minor.name,
                  "' whole, or '", major.name, "' split ", major.size, " times");
            break;
          }
          if (open < 0 && splits_[at(f)] < rule_.list[at(f)].size) open = f;
        }
      }
    };
    for (std::size_t i = 0; i < rule_.ins.size(); ++i) keep("input", i, rule_.ins[i]);
    for (std::size_t r = 0; r < rule_.outs.size(); ++r) keep("result", r, rule_.outs[r]);
  }

  std::string alias(int d) const {
    return aliases_.empty() ? text(d) : aliases_[aliases_.size() - 1 - at(d)];
  }

  TensorLayout layout(const Factors::Dims& dims) const {
    TensorLayout out{matrix_, {}, aliases_};
    for (const std::vector<int>& fs : dims) {
      std::vector<int> map;
      for (const int f : fs) map.insert(map.end(), dims_[at(f)].begin(), dims_[at(f)].end());
      out.map.push_back(std::move(map));
    }
    return out;
  }

  void read_results() {
    const std::size_t given = std::max(shard_.outs.size(), shard_.out_layouts.size());
    if (given == 0) return;
    if (given != rule_.outs.size())
      return wrong(given, " output strategies for ", rule_.outs.size(), " results; give each one");
    out_.outs_asked = true;
    for (std::size_t r = 0; r < given; ++r) {
      TensorLayout& result = out_.outs[r];
      const std::size_t ndim = result.map.size();
      const std::size_t length =
          shard_.outs.empty() ? shard_.out_layouts[r].map.size() : shard_.outs[r].size();
      if (length != ndim) {
        wrong("the strategy of result ", r, " has ", length, " dims, but the result has ", ndim);
        continue;
      }
      if (shard_.outs.empty()) {
        const TensorLayout &given = shard_.out_layouts[r], &of_inputs = shard_.in_layouts[0];
        if (given.matrix != of_inputs.matrix || given.aliases != of_inputs.aliases) {
          wrong("the layout of result ", r, " is on another matrix than those of the inputs");
          continue;
        }
        result = in_parts(given, parts_);
        check_result(r);
      } else {
        for (std::size_t d = 0; d < ndim; ++d) split_result(r, d, shard_.outs[r][d]);
      }
    }
  }

  /// A dim of a result as the op leaves it, whole, or cut further along what else the op was split
  /// by: rows by rows and by what was summed over, which scatters the sums.
  void split_result(std::size_t r, std::size_t d, std::int64_t n) {
    std::vector<int>& map = out_.outs[r].map[d];
    const std::int64_t parts = out_.outs[r].splits()[d];
    if (n == parts) return;
    if (n == 1) return map.clear();
    const std::int64_t size = node_.type(static_cast<int>(r)).shape[static_cast<int>(d)];
    const std::vector<int> free = out_.outs[r].repeated();
    for (std::size_t chosen = 1; chosen < std::size_t{1} << free.size(); ++chosen) {
      std::int64_t cut = parts;
      std::vector<int> further = map;
      for (std::size_t k = 0; k < free.size(); ++k) {
        if ((chosen >> k & 1) == 0) continue;
        cut *= matrix_[matrix_.size() - 1 - at(free[k])];
        further.push_back(free[k]);
      }
      if (cut != n || size % n != 0) continue;
      std::sort(further.rbegin(), further.rend());  // in the order of the matrix, as other dims are
      map = further;
      return;
    }
    wrong("dim ", d, " of result ", r, " of size ", size, " cannot be kept in ", n,
          " parts; legal: 1, the ", parts, " that the op leaves it in, or these times parts of ",
          matrix_text(), " that cut no other dim of it");
  }

  std::string matrix_text() const {
    std::vector<std::string> sizes;
    for (const std::int64_t size : matrix_) sizes.push_back(text(size));
    return text("(", join(sizes), ")");
  }

  void check_result(std::size_t r) {
    const Shape& shape = node_.type(static_cast<int>(r)).shape;
    const std::vector<std::int64_t> parts = out_.outs[r].splits();
    for (int d = 0; d < shape.ndim(); ++d) {
      if (shape[d] % parts[at(d)] != 0)
        wrong("dim ", d, " of result ", r, " has size ", shape[d], ", which ", parts[at(d)],
              " parts do not divide; legal: ", divisors(shape[d]));
    }
  }

  const Graph& graph_;
  const Node& node_;
  Factors rule_;
  const OpShard& shard_;
  std::int64_t devices_;
  std::vector<std::int64_t> splits_;  // per factor
  std::vector<int> order_;            // of factors in the matrix
  DeviceMatrix matrix_;
  std::vector<std::string> aliases_;              // of its dims, or none
  std::vector<std::vector<std::int64_t>> parts_;  // of layouts: of each dim of the given matrix
  std::vector<std::vector<int>> dims_;            // per factor, of the matrix, from the right
  std::vector<std::string> reasons_;
  OpSpread out_;
};

}  // namespace

OpSpread spread(const Graph& graph, NodeId node, const OpShard& shard, std::int64_t devices) {
  OpSpread out = Spreading(graph, node, without_repeated_dims(graph, node, shard), devices).run();
  out.path = shard.ops;
  return out;
}

}  // namespace tessera
