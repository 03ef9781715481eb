#pragma once
/// The functions by which other languages write graphs: ops, layers, and what a graph is made of,
/// by the names that they have in C++.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/c_api/call_fields.h"
#include "tessera/ir/builder.h"

namespace tessera {

struct GraphCall;

/// A graph that is being written.
struct OpenGraph {
  OpenGraph() : own(std::make_unique<Builder>()), builder(*own) {}
  /// One that somebody else writes too, and that outlives this.
  explicit OpenGraph(Builder& of) : builder(of) {}

  const std::unique_ptr<Builder> own;
  Builder& builder;
  std::vector<std::unique_ptr<Scope>> scopes;
  Value samples;            // of samples_seen()
  std::string broken = {};  // what failed when the graph had been changed; empty: nothing

  /// Does what {"op": "matmul", "a": "%3", "b": "%4", "trans_b": true, "at": "net.py:12"} says;
  /// "at" may be left out. Returns {"values": [{"id": "%5", "shape": [2, 3], "dtype": "f32"}]}.
  /// Errors: a name or an argument that is not there, with near ones; those of the function.
  CallJson call(const CallJson& asked);
  /// Errors: scopes that are open; it is broken.
  const Graph& finished() const;
};

/// The arguments of one call.
class CallArguments : public CallFields {
 public:
  CallArguments(OpenGraph& graph, const GraphCall& call, const CallJson& given, Where where)
      : CallFields(given, name_of(call), &graph.builder), graph(graph), where(std::move(where)) {}

  Value value(const char* name) { return need<Value>(name); }
  /// Invalid where it is null.
  Value maybe(const char* name) {
    Value out;
    get(name, out);
    return out;
  }
  At at(const char* name) { return {value(name), where}; }
  std::vector<Value> values(const char* name) {
    const auto out = need<std::vector<Value>>(name);
    require(!out.empty(), what(), ": ", name, " is an empty list; give at least one value");
    return out;
  }
  std::int64_t integer(const char* name) { return need<std::int64_t>(name); }
  double number(const char* name) { return need<double>(name); }
  bool flag(const char* name) { return need<bool>(name); }
  std::string text_of(const char* name) { return need<std::string>(name); }
  /// A name that paths, files and messages can hold. Errors: it is none.
  std::string plain_name(const char* name);
  WeightInit init(const char* name = "init") { return need<WeightInit>(name); }
  /// A dim of `of`; negative counts from the end. Errors: it has no such dim.
  int dim(const char* name, Value of);
  /// Of `of`, ascending and from 0.
  std::vector<std::int64_t> dims(const char* name, Value of);

  OpenGraph& graph;
  Where where;

 private:
  static std::string name_of(const GraphCall& call);
};

struct GraphCall {
  std::string_view name;
  /// Names of arguments with blanks between; with =JSON the default of one that may be left out.
  std::string_view arguments;
  std::vector<Value> (*run)(CallArguments& c);
  std::string_view op = {};  // of the op table, where the name is another
};

/// Of each kind, and all of them.
std::span<const GraphCall> structure_calls();
std::span<const GraphCall> op_calls();
std::span<const GraphCall> layer_calls();
/// {"id": "%5", "shape": [2, 3], "dtype": "f32"}
CallJson value_json(const Value& value);

const GraphCall* find_graph_call(std::string_view name);

/// All functions: [{"name": "matmul", "kind": "ops", "arguments": [{"name": "a"}, ...,
/// {"name": "trans_b", "default": false}]}]; kinds are structure, ops and layers.
const std::string& graph_calls_json();

}  // namespace tessera
