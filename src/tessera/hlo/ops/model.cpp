/// The gradient of the loss, positions, and bodies of several ops. Norms and softmax have expansions.

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/hlo/op_call.h"
#include "tessera/ops/attention.h"
#include "tessera/ops/fused.h"
#include "tessera/ops/softmax.h"

namespace tessera::hlo {

namespace {

/// dloss * (softmax - hit), 0 where the label is ignored.
void write_cross_entropy_grad(Writing& w) {
  const Value &x = w.in(0), &labels = w.in(1);
  const Value hit = w.code.convert(w.e.hits(labels, w.operand(0)), x.element());
  const Value d = w.code.column(w.in(3)) * (w.code.exp(x - w.code.column(w.in(2))) - hit);
  const auto ignored = static_cast<double>(w.call.integer("ignore_index"));
  w.out(w.code.select(ne(w.code.column(labels), ignored), d, 0.0));
}

void write_rope(Writing& w) {
  const Value &x = w.in(0), &positions = w.in(1);
  const std::vector<double>& rates = w.call.numbers("rates");
  const double factor = w.call.number("factor");
  const int last = x.ndim() - 1;
  const std::int64_t size = x.shape()[last], pairs = std::ssize(rates);
  Shape shape = positions.shape();
  while (shape.ndim() < x.ndim()) shape.push_back(1);
  const Value place = w.code.reshape(w.code.convert(positions, x.element()), shape);
  const Value angle = place * w.code.table(rates, x.element());
  Value cosine = w.code.unary("cosine", angle), sine = w.code.unary("sine", angle);
  if (w.call.flag("inverse")) sine = w.code.unary("negate", sine);
  if (factor != 1) cosine = cosine * factor, sine = sine * factor;
  const Value a = w.code.slice(x, last, 0, pairs), b = w.code.slice(x, last, pairs, pairs);
  Values parts = {a * cosine - b * sine, b * cosine + a * sine};
  if (2 * pairs < size) parts.push_back(w.code.slice(x, last, 2 * pairs, size - 2 * pairs));
  w.out(w.code.concat(parts, last));
}

/// What values of a body have no placements of their own to say: of each dim, counted from the
/// last, the axes and the logical size that operands and results of the call have there.
class BodyPlaces {
 public:
  BodyPlaces(const Graph& body, const Writing& w) : space_(space_of_body(body).shape) {
    for (const Node& node : body.nodes()) {
      if (node.op == &kBatch)
        learn(node.type().shape, w.operand(operand_of_body(node, w.num_in())));
    }
    for (std::size_t i = 0; i < body.outputs().size(); ++i)
      learn(body.type(body.outputs()[i].value).shape, w.result(static_cast<int>(i)));
  }

  /// The body with placements.
  Graph placed(const Graph& body, const Mesh& mesh) const {
    Builder builder(Form::Local, mesh);
    std::vector<std::vector<tessera::Value>> values;
    for (const Node& node : body.nodes()) {
      Node copy = node;
      for (Result& result : copy.results) place(result);
      ValueIds inputs;
      for (const ValueId input : node.inputs)
        inputs.push_back(values[at(input.node)][at(input.index)].id());
      values.push_back(builder.copy(std::move(copy), inputs));
    }
    for (const Output& output : body.outputs())
      builder.output(output.kind, output.name,
                     values[at(output.value.node)][at(output.value.index)]);
    return builder.finish();
  }

 private:
  struct Dim {
    std::vector<std::string> axes;
    std::int64_t logical = 0;
  };

  void learn(const Shape& inner, const Result& outer) {
    for (int i = 0; i < inner.ndim() && outer.placement; ++i) {
      if (i >= space_.ndim() || inner.back(i) != space_.back(i)) continue;
      const int d = outer.type.ndim() - 1 - i;
      known_[i] = {outer.placement->sharding.dims[at(d)], outer.logical[d]};
    }
  }

  void place(Result& result) const {
    const int ndim = result.type.ndim();
    Sharding sharding = Sharding::replicated(ndim);
    result.logical = result.type.shape;
    for (int d = 0; d < ndim; ++d) {
      const auto found = known_.find(ndim - 1 - d);
      const bool repeats =
          found == known_.end() || result.type.shape[d] != space_.back(ndim - 1 - d);
      if (repeats) continue;
      sharding.dims[at(d)] = found->second.axes;
      result.logical[d] = found->second.logical;
    }
    result.placement = Placement{std::move(sharding)};
  }

  Shape space_;
  std::map<int, Dim> known_;
};

/// One op after another: the compiler below fuses as it likes.
void write_fused(Writing& w) {
  const Graph& body = w.call.graph("body");
  const Graph placed = BodyPlaces(body, w).placed(body, w.e.mesh);
  const auto leaves = [&](const Node& leaf) { return w.in(operand_of_body(leaf, w.num_in())); };
  const Emitter::Known known = w.e.graph(placed, leaves);
  for (const Output& output : placed.outputs()) w.out(known.at(output.value));
}

constinit const Emission kModel[] = {
    {&kCrossEntropyGrad, write_cross_entropy_grad, "", Numbers::Wide, Source::Formula},
    {&kRope, write_rope, "", Numbers::Wide, Source::Formula},
    {&kFused, write_fused, "", Numbers::AsTheyAre, Source::Expansion},
};

}  // namespace

std::span<const Emission> model_emissions() { return kModel; }

}  // namespace tessera::hlo
