/// Of Code: reductions, products, and what holds regions of its own.

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/base/text.h"
#include "tessera/hlo/code.h"

namespace tessera::hlo {

namespace {

using Names = std::vector<std::string>;

Names names_in(std::string_view side) {
  Names out;
  for (const std::string& name : split(trim(side), ' ')) {
    if (!name.empty()) out.push_back(name);
  }
  return out;
}

bool has(const Names& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

std::int64_t place_in(const Names& names, const std::string& name) {
  return std::ranges::find(names, name) - names.begin();
}

std::string places_in(const Names& names, const Names& of) {
  std::vector<std::int64_t> out;
  for (const std::string& name : names) out.push_back(place_in(of, name));
  return list_text(out);
}

/// Of a product of f32: all digits, or TF32.
std::string precision(Products products, Element element) {
  if (products == Products::Exact || element != Element::F32)
    return "precision = [HIGHEST, HIGHEST]";
  return "algorithm = <lhs_precision_type = tf32, "
         "rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, "
         "rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = "
         "false>";
}

std::string typed(const Values& values) {
  std::vector<Type> out;
  for (const Value& value : values) out.push_back(value.type());
  return join(out);
}

/// The results of an op that has several.
Values results_of(Code& code, const std::string& name, const std::vector<Type>& types) {
  Values out;
  for (std::size_t i = 0; i < types.size(); ++i)
    out.emplace_back(code, types.size() == 1 ? name : text(name, "#", i), types[i]);
  return out;
}

/// "%5", or "%5:2" of two results.
std::string head_of(const std::string& name, std::size_t results) {
  return results == 1 ? name : text(name, ":", results);
}

}  // namespace

Value Code::reduce(const Value& x, const std::vector<std::int64_t>& dims, Monoid monoid,
                   bool keep) {
  Type type{x.element(), {}};
  Shape kept = x.shape();
  for (int d = 0; d < x.ndim(); ++d) {
    if (std::ranges::find(dims, d) == dims.end()) {
      type.shape.push_back(x.shape()[d]);
    } else {
      kept[d] = 1;
    }
  }
  const Value start = identity(monoid, x.element());
  const Value y =
      line(text("stablehlo.reduce(", x, " init: ", start, ") applies stablehlo.",
                combining(monoid, x.element()), " across dimensions = ", list_text(dims), " : (",
                x.type(), ", ", start.type(), ") -> ", type),
           type);
  return keep ? reshape(y, kept) : y;
}

Value Code::einsum(std::string_view rule, const Value& a, const Value& b, Element element) {
  const std::size_t arrow = rule.find("->"), comma = rule.find(',');
  const Names left = names_in(rule.substr(0, comma)),
              right = names_in(rule.substr(comma + 1, arrow - comma - 1)),
              out = names_in(rule.substr(arrow + 2));
  Names batch, summed, order;
  for (const std::string& name : left) {
    if (has(right, name)) (has(out, name) ? batch : summed).push_back(name);
  }
  order = batch;
  for (const std::string& name : left)
    if (!has(right, name)) order.push_back(name);
  for (const std::string& name : right)
    if (!has(left, name)) order.push_back(name);
  Type type{computed_in(a.element()), {}};
  for (const std::string& name : order) {
    type.shape.push_back(has(left, name) ? a.shape()[static_cast<int>(place_in(left, name))]
                                         : b.shape()[static_cast<int>(place_in(right, name))]);
  }
  const std::string batching = batch.empty() ? ""
                                             : text("batching_dims = ", places_in(batch, left),
                                                    " x ", places_in(batch, right), ", ");
  const Value y = line(
      text("stablehlo.dot_general ", a, ", ", b, ", ", batching,
           "contracting_dims = ", places_in(summed, left), " x ", places_in(summed, right), ", ",
           precision(products_, a.element()), " : (", a.type(), ", ", b.type(), ") -> ", type),
      type);
  std::vector<std::int64_t> permutation;
  for (const std::string& name : out) permutation.push_back(place_in(order, name));
  return transpose(convert(y, element), permutation);
}

Values Code::top_k(const Value& x, std::int64_t k) {
  const int last = x.ndim() - 1;
  const Value places = iota(x.shape(), last, Element::I32);
  const Type v{x.element(), {}}, i{Element::I32, {}};
  const bool floating = is_float(x.element());
  const std::string nan =
      !floating ? "%r = stablehlo.or %g, %g : tensor<i1>"
                : text("%an = stablehlo.compare NE, %a, %a, FLOAT : (", v, ", ", v,
                       ") -> tensor<i1> %bn = stablehlo.compare EQ, %b, %b, FLOAT : (", v, ", ", v,
                       ") -> tensor<i1> %n = stablehlo.and %an, %bn : tensor<i1> %r = "
                       "stablehlo.or %g, %n : tensor<i1>");
  const std::string name = fresh();
  append(text(head_of(name, 2), " = \"stablehlo.sort\"(", x, ", ", places, ") ({ ^bb0(%a: ", v,
              ", %b: ", v, ", %i: ", i, ", %j: ", i, "): %g = stablehlo.compare GT, %a, %b, ",
              floating ? "FLOAT" : "SIGNED", " : (", v, ", ", v, ") -> tensor<i1> ", nan,
              " stablehlo.return %r : tensor<i1> }) {dimension = ", last,
              " : i64, is_stable = true} : (", x.type(), ", ", places.type(), ") -> (", x.type(),
              ", ", places.type(), ")"));
  const Values sorted = results_of(*this, name, {x.type(), places.type()});
  return {slice(sorted[0], last, 0, k), slice(sorted[1], last, 0, k)};
}

Values Code::loop(const Values& start, const Condition& condition, const Body& body) {
  const std::string whole = fresh();
  Values inside;
  std::vector<std::string> heads;
  std::vector<Type> types;
  for (const Value& value : start) {
    inside.emplace_back(*this, fresh(), value.type());
    heads.push_back(text(inside.back(), " = ", value));
    types.push_back(value.type());
  }
  append(
      text(head_of(whole, start.size()), " = stablehlo.while(", join(heads), ") : ", join(types)));
  append("cond {");
  known_.emplace_back();
  const Value goes_on = condition(inside);
  known_.back().clear();
  append(text("stablehlo.return ", goes_on, " : ", goes_on.type()));
  append("} do {");
  const Values next = body(inside);
  known_.pop_back();
  check(next.size() == start.size(), "a loop of ", start.size(), " values makes ", next.size());
  append(text("stablehlo.return ", join(next), " : ", typed(next)));
  append("}");
  return results_of(*this, whole, types);
}

Values Code::call(const std::string& function, const Values& arguments,
                  const std::vector<Type>& types) {
  const std::string name = fresh();
  append(text(head_of(name, types.size()), " = func.call ", function, "(", join(arguments), ") : (",
              typed(arguments), ") -> (", join(types), ")"));
  return results_of(*this, name, types);
}

Values Code::custom_call(std::string_view target, const Values& ins, std::string_view config,
                         const std::vector<CallResult>& results) {
  const auto layout = [](const std::vector<std::int64_t>& dims) {
    return text("dense<", list_text(dims), "> : tensor<", dims.size(), "xindex>");
  };
  std::vector<std::string> from, to;
  std::vector<Type> types;
  for (const Value& in : ins) {
    std::vector<std::int64_t> plain;
    for (int d = in.ndim(); d-- > 0;) plain.push_back(d);
    from.push_back(layout(plain));
  }
  for (const CallResult& result : results) {
    types.push_back(result.type);
    to.push_back(layout(result.layout));
  }
  std::string quoted;
  for (const char letter : config) quoted += text(letter == '"' ? "\\" : "", letter);
  const std::string name = fresh();
  append(text(head_of(name, types.size()), " = stablehlo.custom_call @", target, "(", join(ins),
              ") {api_version = 2 : i32, backend_config = \"", quoted, "\", operand_layouts = [",
              join(from), "], result_layouts = [", join(to), "]} : (", typed(ins), ") -> (",
              join(types), ")"));
  return results_of(*this, name, types);
}

Values Code::kept_apart(const Values& values) {
  if (values.empty()) return {};
  std::vector<Type> types;
  for (const Value& value : values) types.push_back(value.type());
  const std::string name = fresh();
  append(text(head_of(name, types.size()), " = stablehlo.optimization_barrier ", join(values),
              " : ", join(types)));
  return results_of(*this, name, types);
}

Value Code::collective(std::string_view op, const Value& x, std::string_view attributes,
                       const Shape& shape, std::optional<Monoid> monoid) {
  const Type scalar{x.element(), {}}, type{x.element(), shape};
  const std::string body =
      !monoid ? ""
              : text(" ({ ^bb0(%a: ", scalar, ", %b: ", scalar, "): %c = stablehlo.",
                     combining(*monoid, x.element()), " %a, %b : ", scalar,
                     " stablehlo.return %c : ", scalar, " })");
  return line(text("\"stablehlo.", op, "\"(", x, ")", body, " {", attributes, "} : (", x.type(),
                   ") -> ", type),
              type);
}

}  // namespace tessera::hlo
