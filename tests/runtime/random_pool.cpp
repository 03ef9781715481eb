#include "runtime/random_pool.h"

#include <algorithm>
#include <cmath>

#include "tessera/ops/elementwise.h"

namespace tessera::fuzz {

std::optional<Item> Pool::pick(const Wanted& wanted) {
  const std::int64_t count = static_cast<std::int64_t>(items.size() - window);
  for (int attempt = 0; attempt < 16 && count > 0; ++attempt) {
    const double back = random.between(0, 1);
    const double reach = random.chance(0.6) ? back * back * back : back;  // mostly recent ones
    const auto at = static_cast<std::int64_t>(reach * static_cast<double>(count));
    const Item& item = items[items.size() - 1 - static_cast<std::size_t>(std::min(at, count - 1))];
    if (wanted(item)) return item;
  }
  return std::nullopt;
}

void Pool::push(Item item, std::initializer_list<const Item*> from) {
  if (item.value.type().numel() > max_elements || item.ndim() > 6) return;
  for (const Item* source : from) {
    item.gradient_stops = item.gradient_stops || source->gradient_stops;
    item.trained = item.trained || source->trained;
  }
  if (item.value.dtype() != DType::F32) item.gradient_stops = false;
  if (item.is(DType::F32) && item.size > 6) {
    item.value = random.chance(0.5) ? tanh(item.value) : item.value * (1.0 / item.size);
    item.size = 1;
  }
  items.push_back(item);
}

void Pool::meets(const Item& result, const Item& operand) {
  if (result.rows_dim < 0 || operand.rows_dim >= 0 || !operand.trained) return;
  const int from_end = result.ndim() - 1 - result.rows_dim;
  if (operand.ndim() > from_end && operand.shape().back(from_end) > 1) mixes_rows = true;
}

Item Pool::parameter(const Shape& shape) {
  if (random.chance(0.15)) {
    const auto known = pick([&](const Item& i) {
      return i.is(DType::F32) && i.shape() == shape && builder.node(i.value).op == &kState;
    });
    if (known) return *known;
  }
  const Value value = builder.state(fresh_name("w"), {DType::F32, shape, {}}, Role::Parameter,
                                    {Init::Kind::Normal, 0.5});
  items.push_back({value});
  items.back().trained = true;
  return items.back();
}

Item Pool::batch_floats(const Shape& shape) {
  const std::string name = text("x", builder.so_far().size());
  items.push_back({builder.batch(name, {DType::F32, shape, {}}), 0});
  return items.back();
}

Item Pool::batch_ids(const Shape& shape, std::int64_t high) {
  const std::string name = text("ids", builder.so_far().size(), ".", high);
  items.push_back({builder.batch(name, {DType::I32, shape, {}}), 0});
  items.back().size = static_cast<double>(high);
  return items.back();
}

Item Pool::batch_bits(const Shape& shape) {
  const std::string name = text("bits", builder.so_far().size());
  items.push_back({builder.batch(name, {DType::Bool, shape, {}}), 0});
  return items.back();
}

Item Pool::ids_like(const Item& like, std::int64_t high) {
  if (like.rows_first() && random.chance(0.6)) return batch_ids(like.shape(), high);
  Item out = like;
  out.value = cast(sigmoid(like.value) * (static_cast<double>(high) + 0.5), DType::I32);
  out.size = static_cast<double>(high);
  out.gradient_stops = false;
  return out;
}

std::optional<Item> broadcast_rows(const Item& a, const Item& b) {
  const int ndim = std::max(a.ndim(), b.ndim());
  const auto from_end = [](const Item& i) {
    return i.rows_dim < 0 ? -1 : i.ndim() - 1 - i.rows_dim;
  };
  for (int i = 0; i < std::min(a.ndim(), b.ndim()); ++i) {
    const std::int64_t x = a.shape().back(i), y = b.shape().back(i);
    if (x != y && x != 1 && y != 1) return std::nullopt;
  }
  const int ra = from_end(a), rb = from_end(b);
  if (ra >= 0 && rb >= 0 && (ra != rb || a.per_row != b.per_row)) return std::nullopt;
  Item out;
  out.rows_dim = ra >= 0 ? ndim - 1 - ra : rb >= 0 ? ndim - 1 - rb : -1;
  out.per_row = ra >= 0 ? a.per_row : b.per_row;
  out.size = std::max(a.size, b.size);
  // Rows of one may stand beside a dim of the other that repeats, but not the other way round.
  const Shape shape = broadcast(a.shape(), b.shape());
  if (shape.numel() > kMaxElements) return std::nullopt;
  if (out.rows_dim >= 0 && shape[out.rows_dim] != kRows * out.per_row) return std::nullopt;
  return out;
}

}  // namespace tessera::fuzz
