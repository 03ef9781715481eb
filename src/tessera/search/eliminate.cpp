#include "tessera/search/eliminate.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/index.h"

namespace tessera {

namespace {

bool contains(const std::vector<int>& scope, int variable) {
  return std::find(scope.begin(), scope.end(), variable) != scope.end();
}

void unite(std::vector<int>& scope, const std::vector<int>& more) {
  for (const int v : more) {
    if (!contains(scope, v)) scope.push_back(v);
  }
}

/// Steps through the values of a scope, with the offset in each of several tables.
class Odometer {
 public:
  Odometer(const std::vector<int>& scope, const std::vector<int>& sizes) : scope_(scope) {
    for (const int v : scope) limits_.push_back(sizes[at(v)]);
    values_.assign(scope.size(), 0);
  }
  /// Follows a table whose scope is `scope` (variables outside of the odometer's stay 0).
  void follow(const std::vector<int>& scope, const std::vector<int>& sizes) {
    std::vector<std::int64_t> strides(scope_.size(), 0);
    std::int64_t stride = 1;
    for (std::size_t i = scope.size(); i-- > 0;) {
      for (std::size_t k = 0; k < scope_.size(); ++k) {
        if (scope_[k] == scope[i]) strides[k] = stride;
      }
      stride *= sizes[at(scope[i])];
    }
    strides_.push_back(std::move(strides));
    offsets_.push_back(0);
  }
  std::int64_t offset(std::size_t table) const { return offsets_[table]; }
  bool next() {
    for (std::size_t k = values_.size(); k-- > 0;) {
      for (std::size_t t = 0; t < strides_.size(); ++t) offsets_[t] += strides_[t][k];
      if (++values_[k] < limits_[k]) return true;
      for (std::size_t t = 0; t < strides_.size(); ++t) offsets_[t] -= strides_[t][k] * limits_[k];
      values_[k] = 0;
    }
    return false;
  }

 private:
  std::vector<int> scope_, limits_, values_;
  std::vector<std::vector<std::int64_t>> strides_;
  std::vector<std::int64_t> offsets_;
};

/// The same function with its scope in another order.
CostFunction reordered(const CostFunction& f, std::vector<int> scope,
                       const std::vector<int>& sizes) {
  if (f.scope == scope) return f;
  std::vector<Cost> out(f.costs->size());
  Odometer walk(scope, sizes);
  walk.follow(f.scope, sizes);
  std::size_t i = 0;
  do out[i++] = (*f.costs)[at(walk.offset(0))];
  while (walk.next());
  return {std::move(scope), std::make_shared<const std::vector<Cost>>(std::move(out))};
}

// Eight at a time, which compilers make wide instructions of.
void add(Cost* to, const Cost* from, std::int64_t n) {
  std::int64_t j = 0;
  for (; j + 8 <= n; j += 8) {
    for (int k = 0; k < 8; ++k) to[j + k] += from[j + k];
  }
  for (; j < n; ++j) to[j] += from[j];
}
void lower(Cost* to, const Cost* from, std::int64_t n) {
  std::int64_t j = 0;
  for (; j + 8 <= n; j += 8) {
    for (int k = 0; k < 8; ++k) to[j + k] = from[j + k] < to[j + k] ? from[j + k] : to[j + k];
  }
  for (; j < n; ++j) to[j] = from[j] < to[j] ? from[j] : to[j];
}

}  // namespace

Elimination::Elimination(std::vector<int> sizes, std::vector<CostFunction> functions,
                         std::vector<int> keep, std::int64_t limit)
    : sizes_(std::move(sizes)), of_variable_(sizes_.size()), limit_(limit) {
  std::vector<int> open;
  std::vector<bool> met(sizes_.size(), false);
  for (const int v : keep) met[at(v)] = true;
  for (CostFunction& f : functions) {
    for (const int v : f.scope) {
      if (!met[at(v)]) open.push_back(v);
      met[at(v)] = true;
    }
    take(std::move(f));
  }
  eliminate_all(open);
  std::erase_if(functions_, [](const CostFunction& f) { return f.costs == nullptr; });
  // The remaining tables are over kept variables alone.
  std::vector<Cost> out(at(entries(keep)), 0);
  Odometer walk(keep, sizes_);
  for (const CostFunction& f : functions_) walk.follow(f.scope, sizes_);
  std::size_t i = 0;
  do {
    for (std::size_t f = 0; f < functions_.size(); ++f)
      out[i] += (*functions_[f].costs)[at(walk.offset(f))];
    ++i;
  } while (walk.next());
  least_ = std::make_shared<const std::vector<Cost>>(std::move(out));
}

/// Each time the variable whose elimination takes the smallest table; among these, with the fewest
/// neighbours. An elimination changes the sizes of its neighbours alone.
void Elimination::eliminate_all(const std::vector<int>& open) {
  std::vector<int> order(sizes_.size(), -1);
  for (std::size_t i = 0; i < open.size(); ++i) order[at(open[i])] = static_cast<int>(i);
  std::vector<Size> size(sizes_.size());
  std::set<std::tuple<Size, int, int>> queue;  // size, place in `open`, variable
  const auto key = [&](int v) { return std::tuple(size[at(v)], order[at(v)], v); };
  const auto enter = [&](int v) {
    size[at(v)] = size_of(v);
    queue.insert(key(v));
  };
  for (const int v : open) enter(v);
  while (!queue.empty()) {
    const int variable = std::get<2>(*queue.begin());
    queue.erase(queue.begin());
    order[at(variable)] = -1;
    const std::vector<int> neighbours = neighbours_of(variable);
    eliminate(variable);
    for (const int v : neighbours) {
      if (order[at(v)] < 0) continue;
      queue.erase(key(v));
      enter(v);
    }
  }
}

std::int64_t Elimination::entries(const std::vector<int>& scope) const {
  double out = 1;  // whole numbers of 64 bits are too small for large scopes
  for (const int v : scope) out *= sizes_[at(v)];
  return static_cast<std::int64_t>(std::min(out, 0x1p52));
}

std::vector<int> Elimination::neighbours_of(int variable) const {
  std::vector<int> out;
  for (const int f : of_variable_[at(variable)]) unite(out, functions_[at(f)].scope);
  std::erase(out, variable);
  return out;
}

Elimination::Size Elimination::size_of(int variable) const {
  std::vector<int> scope = neighbours_of(variable);
  scope.push_back(variable);
  return {entries(scope), scope.size()};
}

void Elimination::take(CostFunction f) {
  for (const int v : f.scope) of_variable_[at(v)].push_back(static_cast<int>(functions_.size()));
  functions_.push_back(std::move(f));
}

void Elimination::eliminate(int variable) {
  Bucket bucket{variable, {}};
  for (const int f : std::vector<int>(of_variable_[at(variable)])) {
    for (const int v : functions_[at(f)].scope) std::erase(of_variable_[at(v)], f);
    bucket.functions.push_back(std::exchange(functions_[at(f)], {}));
  }
  // Groups of functions, each as large as the limit allows: one, where it allows all.
  std::vector<std::pair<std::vector<int>, std::vector<CostFunction>>> groups;
  for (const CostFunction& f : bucket.functions) {
    bool placed = false;
    for (auto& [scope, members] : groups) {
      std::vector<int> joint = scope;
      unite(joint, f.scope);
      if (entries(joint) > limit_) continue;
      scope = std::move(joint);
      members.push_back(f);
      placed = true;
      break;
    }
    if (!placed) groups.push_back({f.scope, {f}});
  }
  if (groups.size() > 1) exact_ = false;
  for (auto& [scope, members] : groups) {
    largest_ = std::max(largest_, entries(scope));
    std::erase(scope, variable);
    width_ = std::max(width_, static_cast<int>(scope.size()));
    take(minimise(variable, members, std::move(scope)));
  }
  buckets_.push_back(std::move(bucket));
}

CostFunction Elimination::minimise(int variable, const std::vector<CostFunction>& functions,
                                   std::vector<int> scope) {
  // The largest variable runs fastest: what does not depend on it is added up once for all of it.
  std::stable_sort(scope.begin(), scope.end(),
                   [&](int a, int b) { return sizes_[at(a)] < sizes_[at(b)]; });
  const int last = scope.empty() ? -1 : scope.back();
  const std::vector<int> outer(scope.begin(), scope.empty() ? scope.end() : scope.end() - 1);
  const std::int64_t inner = last < 0 ? 1 : sizes_[at(last)];
  std::vector<CostFunction> apart, along;  // without the last variable, and with it
  for (const CostFunction& f : functions) {
    std::vector<int> order;
    for (const int v : outer) {
      if (contains(f.scope, v)) order.push_back(v);
    }
    order.push_back(variable);
    const bool depends = last >= 0 && contains(f.scope, last);
    if (depends) order.push_back(last);
    (depends ? along : apart).push_back(reordered(f, std::move(order), sizes_));
  }
  std::vector<Cost> out(at(entries(scope)), kNever), row(at(inner));
  Odometer walk(outer, sizes_);
  for (const CostFunction& f : apart) walk.follow(f.scope, sizes_);
  for (const CostFunction& f : along) walk.follow(f.scope, sizes_);
  Cost* to = out.data();
  do {
    for (int x = 0; x < sizes_[at(variable)]; ++x) {
      Cost constant = 0;
      for (std::size_t f = 0; f < apart.size(); ++f)
        constant += (*apart[f].costs)[at(walk.offset(f) + x)];
      if (constant == kNever) continue;
      std::fill(row.begin(), row.end(), constant);
      for (std::size_t f = 0; f < along.size(); ++f) {
        const Cost* from = along[f].costs->data() + walk.offset(apart.size() + f) + x * inner;
        add(row.data(), from, inner);
      }
      lower(to, row.data(), inner);
    }
    to += inner;
  } while (walk.next());
  return {std::move(scope), std::make_shared<const std::vector<Cost>>(std::move(out))};
}

void Elimination::recover(Picks& values) const {
  for (std::size_t b = buckets_.size(); b-- > 0;) {
    const Bucket& bucket = buckets_[b];
    Cost least = kNever;
    int best = 0;
    for (int x = 0; x < sizes_[at(bucket.variable)]; ++x) {
      values[at(bucket.variable)] = x;
      Cost cost = 0;
      for (const CostFunction& f : bucket.functions) {
        std::int64_t offset = 0;
        for (const int v : f.scope) offset = offset * sizes_[at(v)] + values[at(v)];
        cost += (*f.costs)[at(offset)];
      }
      if (cost < least) least = cost, best = x;
    }
    values[at(bucket.variable)] = best;
  }
}

}  // namespace tessera
