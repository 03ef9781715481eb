/// Of Code: what moves elements.

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/base/text.h"
#include "tessera/hlo/code.h"

namespace tessera::hlo {

namespace {

/// `size` in one dim, 0 in the others.
std::string in_one_dim(int ndim, int dim, std::int64_t size) {
  std::vector<std::int64_t> out(at(ndim), 0);
  out[at(dim)] = size;
  return list_text(out);
}

std::string types_of(const Values& values) {
  std::vector<Type> out;
  for (const Value& value : values) out.push_back(value.type());
  return join(out);
}

/// Where a window begins that begins with dim `dim` at `start`, with the others at 0.
Values starts(Code& code, int ndim, int dim, const Value& start) {
  Values out(at(ndim), code.constant(0, start.element()));
  out[at(dim)] = start;
  return out;
}

std::string numbers(int first, int last) {
  std::vector<std::int64_t> out;
  for (int i = first; i < last; ++i) out.push_back(i);
  return join(out);
}

/// The dims of rows that ids of `ids` dims name, put where dim `dim` was.
std::string dims_around(int dim, int ids, int ndim_of_rows) {
  const std::string before = numbers(0, dim), behind = numbers(dim + ids, ndim_of_rows);
  return text("[", before, before.empty() || behind.empty() ? "" : ", ", behind, "]");
}

}  // namespace

Value Code::broadcast(const Value& x, const Shape& shape) {
  std::vector<int> dims;
  for (int d = shape.ndim() - x.ndim(); d < shape.ndim(); ++d) dims.push_back(d);
  return broadcast_dims(x, shape, dims);
}

Value Code::broadcast_dims(const Value& x, const Shape& shape, const std::vector<int>& dims) {
  if (x.shape() == shape) return x;
  const Type type{x.element(), shape};
  const std::string op = text("stablehlo.broadcast_in_dim ", x, ", dims = [", join(dims), "] : (",
                              x.type(), ") -> ", type);
  return x.ndim() == 0 ? once(op, type) : line(op, type);
}

Value Code::reshape(const Value& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const Type type{x.element(), shape};
  return line(text("stablehlo.reshape ", x, " : (", x.type(), ") -> ", type), type);
}

Value Code::column(const Value& x) {
  Shape shape = x.shape();
  shape.push_back(1);
  return reshape(x, shape);
}

Value Code::transpose(const Value& x, const std::vector<std::int64_t>& order) {
  Type type{x.element(), {}};
  bool same = true;
  for (std::size_t d = 0; d < order.size(); ++d) {
    type.shape.push_back(x.shape()[static_cast<int>(order[d])]);
    same = same && order[d] == static_cast<std::int64_t>(d);
  }
  if (same) return x;
  return line(text("stablehlo.transpose ", x, ", dims = ", list_text(order), " : (", x.type(),
                   ") -> ", type),
              type);
}

Value Code::slice(const Value& x, int dim, std::int64_t start, std::int64_t size,
                  std::int64_t step) {
  Type type = x.type();
  type.shape[dim] = size;
  if (type == x.type()) return x;
  std::vector<std::string> parts;
  for (int d = 0; d < x.ndim(); ++d) {
    const std::int64_t end = size > 0 ? start + (size - 1) * step + 1 : start;
    parts.push_back(d == dim ? text(start, ":", end, ":", step) : text("0:", x.shape()[d]));
  }
  return line(text("stablehlo.slice ", x, " [", join(parts), "] : (", x.type(), ") -> ", type),
              type);
}

Value Code::pad(const Value& x, int dim, std::int64_t low, std::int64_t high, std::int64_t inner,
                double value) {
  if (low == 0 && high == 0 && inner == 0) return x;
  Type type = x.type();
  const std::int64_t n = x.shape()[dim];
  type.shape[dim] = low + high + n + inner * (n > 0 ? n - 1 : 0);
  const Value fill = constant(value, x.element());
  return line(text("stablehlo.pad ", x, ", ", fill, ", low = ", in_one_dim(x.ndim(), dim, low),
                   ", high = ", in_one_dim(x.ndim(), dim, high),
                   ", interior = ", in_one_dim(x.ndim(), dim, inner), " : (", x.type(), ", ",
                   fill.type(), ") -> ", type),
              type);
}

Value Code::concat(const Values& parts, int dim) {
  if (parts.size() == 1) return parts[0];
  Type type = parts[0].type();
  for (std::size_t i = 1; i < parts.size(); ++i) type.shape[dim] += parts[i].shape()[dim];
  return line(text("stablehlo.concatenate ", join(parts), ", dim = ", dim, " : (", types_of(parts),
                   ") -> ", type),
              type);
}

Value Code::dynamic_slice(const Value& x, int dim, const Value& start, const Shape& sizes) {
  if (x.shape() == sizes) return x;
  const Values from = starts(*this, x.ndim(), dim, start);
  const Type type{x.element(), sizes};
  return line(text("stablehlo.dynamic_slice ", x, ", ", join(from), ", sizes = [", join(sizes),
                   "] : (", x.type(), ", ", types_of(from), ") -> ", type),
              type);
}

Value Code::dynamic_update(const Value& x, const Value& part, int dim, const Value& start) {
  const Values from = starts(*this, x.ndim(), dim, start);
  return line(text("stablehlo.dynamic_update_slice ", x, ", ", part, ", ", join(from), " : (",
                   x.type(), ", ", part.type(), ", ", types_of(from), ") -> ", x.type()),
              x.type());
}

Value Code::gather(const Value& table, const Value& places, int dim) {
  Type type{table.element(), {}};
  std::vector<std::int64_t> sizes;
  for (int d = 0; d < table.ndim(); ++d) {
    const std::int64_t n = table.shape()[d];
    sizes.push_back(d == dim ? 1 : n);
    if (d != dim) type.shape.push_back(n);
    for (int i = 0; d == dim && i < places.ndim(); ++i) type.shape.push_back(places.shape()[i]);
  }
  return line(
      text("\"stablehlo.gather\"(", table, ", ", places,
           ") {dimension_numbers = #stablehlo.gather<offset_dims = ",
           dims_around(dim, places.ndim(), type.shape.ndim()), ", collapsed_slice_dims = [", dim,
           "], start_index_map = [", dim, "], index_vector_dim = ", places.ndim(),
           ">, slice_sizes = array<i64: ", join(sizes), ">, indices_are_sorted = false} : (",
           table.type(), ", ", places.type(), ") -> ", type),
      type);
}

Value Code::scatter_add(const Value& table, const Value& places, const Value& rows, int dim) {
  const Type scalar{rows.element(), {}};
  return line(
      text("\"stablehlo.scatter\"(", table, ", ", places, ", ", rows, ") ({ ^bb0(%a: ", scalar,
           ", %b: ", scalar, "): %c = stablehlo.add %a, %b : ", scalar, " stablehlo.return %c : ",
           scalar, " }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = ",
           dims_around(dim, places.ndim(), rows.ndim()), ", inserted_window_dims = [", dim,
           "], scatter_dims_to_operand_dims = [", dim, "], index_vector_dim = ", places.ndim(),
           ">, indices_are_sorted = false, unique_indices = false} : (", table.type(), ", ",
           places.type(), ", ", rows.type(), ") -> ", table.type()),
      table.type());
}

}  // namespace tessera::hlo
