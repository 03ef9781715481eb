#include "tessera/search/repeats.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "tessera/base/error.h"
#include "tessera/base/index.h"

namespace tessera {

namespace {

/// A link as its block sees it: from which place of which block, and to which place of its own.
using SeenLink = std::tuple<int, int, int, const CostTable*>;  // kind, from, to
enum Kind { kInside, kFromBefore, kFromOutside };

struct SeenBlock {
  std::string path;
  std::vector<int> decisions;
  std::vector<const Options*> options;
  std::vector<SeenLink> links;
  std::set<int> borders;  // places that the next block is linked with
  bool left = false;      // something else is linked with what is inside
};

class Finder {
 public:
  explicit Finder(const DecisionGraph& graph) : graph_(graph), block_of_(at(graph.size()), -1) {
    place_.assign(at(graph.size()), 0);
    std::map<std::string, int, std::less<>> known;
    for (int i = 0; i < graph.size(); ++i) {
      const Decision& decision = graph.decisions[at(i)];
      if (decision.block.empty()) continue;
      const auto [found, is_new] =
          known.try_emplace(decision.block, static_cast<int>(blocks_.size()));
      if (is_new) blocks_.push_back({decision.block, {}, {}, {}, {}, false});
      SeenBlock& block = blocks_[at(found->second)];
      block_of_[at(i)] = found->second;
      place_[at(i)] = static_cast<int>(block.decisions.size());
      block.decisions.push_back(i);
      block.options.push_back(decision.options.get());
    }
    for (const Link& link : graph.links) see(link);
    for (SeenBlock& block : blocks_) std::sort(block.links.begin(), block.links.end());
  }

  std::vector<Repeat> run() const {
    std::vector<Repeat> out;
    for (std::size_t first = 1; first < blocks_.size();) {
      std::size_t end = first;
      while (end < blocks_.size() && same(first, end)) ++end;
      if (end - first > 1 && alike_before(first)) out.push_back(repeat(first, end));
      first = std::max(end, first + 1);
    }
    return out;
  }

 private:
  void see(const Link& link) {
    const int from = block_of_[at(link.from)], to = block_of_[at(link.to)];
    if (from >= 0 && to != from && to != from + 1) blocks_[at(from)].left = true;
    if (to < 0) return;
    SeenBlock& block = blocks_[at(to)];
    const int here = place_[at(link.to)], there = place_[at(link.from)];
    if (from == to) {
      block.links.push_back({kInside, there, here, link.table.get()});
    } else if (from >= 0 && from == to - 1) {
      block.links.push_back({kFromBefore, there, here, link.table.get()});
      blocks_[at(from)].borders.insert(there);
    } else {
      block.links.push_back({kFromOutside, link.from, here, link.table.get()});
    }
  }

  bool same(std::size_t first, std::size_t other) const {
    const SeenBlock &a = blocks_[first], &b = blocks_[other];
    return !b.left && a.options == b.options && a.links == b.links && a.borders == b.borders;
  }

  /// True if each block reads of the one before what the first block reads of its predecessor.
  bool alike_before(std::size_t first) const {
    std::set<int> read;
    for (const auto& [kind, from, to, table] : blocks_[first].links) {
      if (kind == kFromBefore) read.insert(from);
    }
    return read == blocks_[first].borders;
  }

  Repeat repeat(std::size_t first, std::size_t end) const {
    Repeat out;
    for (std::size_t b = first; b < end; ++b) out.blocks.push_back(blocks_[b].decisions);
    out.before = blocks_[first - 1].decisions;
    out.borders.assign(blocks_[first].borders.begin(), blocks_[first].borders.end());
    std::set<int> outside;
    for (const auto& [kind, from, to, table] : blocks_[first].links) {
      if (kind == kFromOutside) outside.insert(from);
    }
    out.outside.assign(outside.begin(), outside.end());
    return out;
  }

  const DecisionGraph& graph_;
  std::vector<int> block_of_, place_;
  std::vector<SeenBlock> blocks_;
};

/// May be more than whole numbers of 64 bits can say.
double states_of(const std::vector<int>& variables, const std::vector<int>& sizes) {
  double out = 1;
  for (const int v : variables) out *= sizes[at(v)];
  return out;
}

std::vector<int> at_borders(const Repeat& repeat, const std::vector<int>& decisions) {
  std::vector<int> out;
  for (const int place : repeat.borders) out.push_back(decisions[at(place)]);
  return out;
}

std::int64_t state_of(const std::vector<int>& variables, const std::vector<int>& sizes,
                      const Picks& values) {
  std::int64_t out = 0;
  for (const int v : variables) out = out * sizes[at(v)] + values[at(v)];
  return out;
}

void set_state(const std::vector<int>& variables, const std::vector<int>& sizes, std::int64_t state,
               Picks& values) {
  for (std::size_t i = variables.size(); i-- > 0;) {
    values[at(variables[i])] = static_cast<int>(state % sizes[at(variables[i])]);
    state /= sizes[at(variables[i])];
  }
}

}  // namespace

std::vector<Repeat> find_repeats(const DecisionGraph& graph) { return Finder(graph).run(); }

FoldedRun::FoldedRun(const Repeat& repeat, const std::vector<int>& sizes,
                     std::vector<CostFunction>& functions, std::int64_t limit)
    : repeat_(repeat), sizes_(sizes) {
  const std::vector<int> behind = at_borders(repeat, repeat.blocks[0]);
  const double states = states_of(behind, sizes), outer = states_of(repeat.outside, sizes),
               entries = outer * states * states, most = static_cast<double>(limit);
  if (entries > most || entries * states > 64 * most) return;
  states_ = static_cast<std::int64_t>(states);
  outer_ = static_cast<std::int64_t>(outer);
  std::set<int> first(repeat.blocks[0].begin(), repeat.blocks[0].end()), all;
  for (const std::vector<int>& block : repeat.blocks) all.insert(block.begin(), block.end());
  std::vector<CostFunction> of_block, others;
  for (const CostFunction& f : functions) {
    // A link with the block behind the run belongs to that block.
    const int owner = *std::max_element(f.scope.begin(), f.scope.end());
    if (first.count(owner)) of_block.push_back(f);
    if (!all.count(owner)) others.push_back(f);
  }
  std::vector<int> keep = repeat.outside;
  const std::vector<int> before = at_borders(repeat, repeat.before);
  keep.insert(keep.end(), before.begin(), before.end());
  keep.insert(keep.end(), behind.begin(), behind.end());
  block_ = std::make_unique<Elimination>(sizes, std::move(of_block), keep, limit);
  functions = std::move(others);
  powers_.push_back(block_->least());
  for (std::size_t n = 2; n <= repeat.blocks.size(); n *= 2)
    powers_.push_back(times(powers_.back(), powers_.back()));
  for (std::size_t bit = 0; bit < powers_.size(); ++bit) {
    if ((repeat.blocks.size() >> bit & 1) == 0) continue;
    tails_.push_back(tails_.empty() ? powers_[bit] : times(powers_[bit], tails_.back()));
  }
}

FoldedRun::Power FoldedRun::times(const Power& a, const Power& b) const {
  Power out(a.size(), kNever);
  for (std::int64_t w = 0; w < outer_; ++w) {
    for (std::int64_t i = 0; i < states_; ++i) {
      Cost* to = out.data() + (w * states_ + i) * states_;
      for (std::int64_t k = 0; k < states_; ++k) {
        const Cost first = a[at((w * states_ + i) * states_ + k)];
        if (first == kNever) continue;
        const Cost* from = b.data() + (w * states_ + k) * states_;
        for (std::int64_t j = 0; j < states_; ++j) {
          const Cost sum = first + from[j];
          to[j] = sum < to[j] ? sum : to[j];
        }
      }
    }
  }
  return out;
}

CostFunction FoldedRun::function() const {
  std::vector<int> scope = repeat_.outside;
  const std::vector<int> before = at_borders(repeat_, repeat_.before),
                         behind = at_borders(repeat_, repeat_.blocks.back());
  scope.insert(scope.end(), before.begin(), before.end());
  scope.insert(scope.end(), behind.begin(), behind.end());
  return {std::move(scope), std::make_shared<const std::vector<Cost>>(tails_.back())};
}

int FoldedRun::between(const Power& a, const Power& b, std::int64_t outer, std::int64_t from,
                       std::int64_t to) const {
  Cost least = kNever;
  int best = 0;
  for (std::int64_t k = 0; k < states_; ++k) {
    const Cost sum =
        a[at((outer * states_ + from) * states_ + k)] + b[at((outer * states_ + k) * states_ + to)];
    if (sum < least) least = sum, best = static_cast<int>(k);
  }
  return best;
}

/// The states behind blocks first .. first + count - 2, where `count` is a power of two.
void FoldedRun::set_borders(std::size_t first, std::size_t count, std::int64_t outer,
                            std::int64_t from, std::int64_t to,
                            std::vector<std::int64_t>& states) const {
  states[first + count - 1] = to;
  if (count == 1) return;
  std::size_t bit = 0;
  while (std::size_t{2} << bit < count) ++bit;
  const int middle = between(powers_[bit], powers_[bit], outer, from, to);
  set_borders(first, count / 2, outer, from, middle, states);
  set_borders(first + count / 2, count / 2, outer, middle, to, states);
}

void FoldedRun::recover(Picks& values) const {
  const std::size_t n = repeat_.blocks.size();
  const std::int64_t outer = state_of(repeat_.outside, sizes_, values),
                     end = state_of(at_borders(repeat_, repeat_.blocks.back()), sizes_, values);
  std::vector<std::int64_t> states(n);
  std::int64_t from = state_of(at_borders(repeat_, repeat_.before), sizes_, values);
  std::size_t done = 0, tail = tails_.size();
  for (std::size_t bit = powers_.size(); bit-- > 0;) {
    if ((n >> bit & 1) == 0) continue;
    --tail;  // of this power and all lower ones
    const std::int64_t to =
        tail == 0 ? end : between(powers_[bit], tails_[tail - 1], outer, from, end);
    set_borders(done, std::size_t{1} << bit, outer, from, to, states);
    done += std::size_t{1} << bit;
    from = to;
  }
  Picks local = values;
  std::int64_t before = state_of(at_borders(repeat_, repeat_.before), sizes_, values);
  const std::vector<int>& first = repeat_.blocks[0];
  for (std::size_t b = 0; b < n; ++b) {
    set_state(at_borders(repeat_, repeat_.before), sizes_, before, local);
    set_state(at_borders(repeat_, first), sizes_, states[b], local);
    block_->recover(local);
    for (std::size_t i = 0; i < first.size(); ++i)
      values[at(repeat_.blocks[b][i])] = local[at(first[i])];
    before = states[b];
  }
}

}  // namespace tessera
