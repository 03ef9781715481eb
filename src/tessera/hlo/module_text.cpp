#include "tessera/hlo/module_text.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "tessera/base/error.h"
#include "tessera/base/index.h"
#include "tessera/base/text.h"
#include "tessera/ops/collective.h"

namespace tessera::hlo {

namespace {

/// A name that needs no quotes.
std::string symbol(const std::string& name) {
  std::string out;
  for (const char c : name) out += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return out;
}

int find_port(const std::vector<Port>& ports, Port::Kind kind, std::string_view name) {
  const auto found = std::ranges::find_if(
      ports, [&](const Port& port) { return port.kind == kind && port.name == name; });
  return found == ports.end() ? -1 : static_cast<int>(found - ports.begin());
}

}  // namespace

std::string to_text(const Port& port) {
  constexpr std::array<std::string_view, 8> kKinds = {"state",   "batch", "metric",  "slot",
                                                      "message", "sum",   "operand", "microbatch"};
  const std::string_view kind = kKinds[static_cast<std::size_t>(port.kind)];
  return port.name.empty() ? std::string(kind) : text(kind, " ", port.name);
}

int Module::argument(Port::Kind kind, std::string_view name) const {
  return find_port(arguments, kind, name);
}
int Module::result(Port::Kind kind, std::string_view name) const {
  return find_port(results, kind, name);
}

ModuleText::ModuleText(std::string name, const Mesh& mesh, const EmitOptions& options)
    : module_{std::move(name), {}, mesh, {}, {}, {}},
      options_(options),
      code_(functions_, options.tf32 ? Products::Tf32 : Products::Exact),
      emitter_(code_, module_.mesh, options_) {}

Value ModuleText::argument(Port port) {
  const Value out(code_, text("%arg", module_.arguments.size()), type_of(port.result.type));
  module_.arguments.push_back(std::move(port));
  return out;
}

void ModuleText::result(Port port, const Value& value) {
  check(value.type() == type_of(port.result.type), port, " is written as ", value.type());
  module_.results.push_back(std::move(port));
  values_.push_back(value);
}

Module ModuleText::finish() {
  for (std::size_t i = 0; i < module_.arguments.size(); ++i) {
    const Port& port = module_.arguments[i];
    if (port.kind != Port::Kind::State && port.kind != Port::Kind::Sum) continue;
    const int to = module_.result(port.kind, port.name);
    if (to < 0 || kept_.contains({port.kind, port.name})) continue;
    check(module_.results[at(to)].result.type == port.result.type, port, " is a ", port.result.type,
          ", its next value a ", module_.results[at(to)].result.type);
    module_.donations.push_back({static_cast<int>(i), to});
  }
  module_.text = text(
      "module @", symbol(module_.name), " attributes {mhlo.num_replicas = ", module_.replicas(),
      " : i32, mhlo.num_partitions = 1 : i32} {\n", main_text(), functions_.written(), "}\n");
  return std::move(module_);
}

std::string ModuleText::main_text() const {
  const auto memory = [&](const Port& port) -> std::string {
    const bool host = options_.pinned_host && memory_of(port.result) == Memory::Host;
    return host ? "mhlo.memory_kind = \"pinned_host\"" : "";
  };
  std::vector<std::string> heads, types;
  std::vector<Type> bare;
  for (std::size_t i = 0; i < module_.arguments.size(); ++i) {
    const Port& port = module_.arguments[i];
    std::string attributes = memory(port);
    for (const auto& [argument, result] : module_.donations) {
      if (argument == static_cast<int>(i))
        attributes +=
            text(attributes.empty() ? "" : ", ", "tf.aliasing_output = ", result, " : i32");
    }
    heads.push_back(text("%arg", i, ": ", type_of(port.result.type)));
    if (!attributes.empty()) heads.back() += text(" {", attributes, "}");
  }
  for (const Port& port : module_.results) {
    bare.push_back(type_of(port.result.type));
    types.push_back(to_text(bare.back()));
    if (const std::string where = memory(port); !where.empty())
      types.back() += text(" {", where, "}");
  }
  const std::string back = values_.empty() ? "" : text(" ", join(values_), " : ", join(bare));
  return text("func.func public @main(", join(heads), ") -> (", join(types), ") {\n",
              code_.written(), "  return", back, "\n}\n");
}

Port port_of_leaf(const Node& leaf) {
  using Kind = Port::Kind;
  const Kind kind = leaf.op == &kState     ? Kind::State
                    : leaf.op == &kBatch   ? Kind::Batch
                    : leaf.op == &kReceive ? Kind::Message
                                           : Kind::Slot;
  return {kind, std::get<std::string>(leaf.attrs[0]), leaf.results[0]};
}

Port port_of_output(const Graph& graph, const Output& output) {
  using Kind = Port::Kind;
  constexpr std::array<Kind, 5> kKinds = {Kind::State, Kind::Metric, Kind::Slot, Kind::Sum,
                                          Kind::Message};
  return {kKinds[static_cast<std::size_t>(output.kind)], output.name, graph.result(output.value)};
}

}  // namespace tessera::hlo
