#include "tessera/c_api/graph_calls.h"

#include <algorithm>
#include <charconv>

#include "tessera/base/error.h"

namespace tessera {

namespace {

constexpr std::pair<const char*, std::span<const GraphCall> (*)()> kCallKinds[] = {
    {"structure", structure_calls}, {"ops", op_calls}, {"layers", layer_calls}};

struct Parameter {
  std::string name;
  CallJson standard;  // what it is where it is left out
  bool needed = true;
};

std::vector<Parameter> parameters_of(const GraphCall& call) {
  std::vector<Parameter> out;
  if (call.arguments.empty()) return out;
  for (const std::string& word : split(call.arguments, ' ')) {
    const std::size_t equal = word.find('=');
    if (equal == word.npos) {
      out.push_back({word, nullptr, true});
    } else {
      out.push_back({word.substr(0, equal), CallJson::parse(word.substr(equal + 1)), false});
    }
  }
  return out;
}

/// The arguments of a call, with those that were left out.
CallJson completed(const GraphCall& call, const CallJson& asked) {
  const std::vector<Parameter> parameters = parameters_of(call);
  CallJson out = CallJson::object();
  std::vector<std::string> names;
  for (const Parameter& parameter : parameters) {
    const auto given = asked.find(parameter.name);
    const bool is_given = given != asked.end();
    require(is_given || !parameter.needed, call.name, ": ", parameter.name, " is missing; give it");
    out[parameter.name] = is_given ? *given : parameter.standard;
    names.push_back(parameter.name);
  }
  for (const auto& [name, value] : asked.items()) {
    if (name == "op" || name == "at") continue;
    require(std::ranges::find(names, name) != names.end(), call.name, " has no argument '", name,
            "'", near_names(name, names));
  }
  return out;
}

/// "net.py:12"; of another text, or of none, nowhere.
Where where_of(const CallJson& asked) {
  const auto at = asked.find("at");
  if (at == asked.end() || !at->is_string()) return {};
  const auto line = at->get<std::string>();
  const std::size_t colon = line.rfind(':');
  int number = 0;
  if (colon != line.npos)
    std::from_chars(line.data() + colon + 1, line.data() + line.size(), number);
  return number > 0 ? Where::read(line.substr(0, colon), number) : Where();
}

std::string unknown_call(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& [kind, calls] : kCallKinds) {
    for (const GraphCall& call : calls()) names.emplace_back(call.name);
  }
  return text("there is no op or layer '", name, "'", near_names(name, names));
}

CallJson result_of(const std::vector<Value>& values) {
  CallJson list = CallJson::array();
  for (const Value& value : values) list.push_back(value_json(value));
  return {{"values", std::move(list)}};
}

}  // namespace

CallJson value_json(const Value& value) {
  const Shape& shape = value.shape();
  return {{"id", to_text(value.id())},
          {"shape", std::vector<std::int64_t>(shape.begin(), shape.end())},
          {"dtype", to_text(value.dtype())}};
}

std::string CallArguments::name_of(const GraphCall& call) { return std::string(call.name); }

std::string CallArguments::plain_name(const char* name) {
  const std::string out = text_of(name);
  const bool plain = !out.empty() && out.size() <= 500 && std::ranges::all_of(out, [](char letter) {
    return letter > ' ' && letter < 0x7f && letter != '*';
  });
  require(plain, what(), ": ", name, " is ", shown_json(out),
          "; give a name of letters, digits, dots and the like");
  return out;
}

int CallArguments::dim(const char* name, Value of) {
  const std::int64_t given = integer(name), ndim = of.ndim();
  require(given >= -ndim && given < ndim, what(), ": ", name, " is ", given, ", but the value is ",
          of.type(), ndim == 0 ? "; give one with dims" : text("; give ", -ndim, " to ", ndim - 1));
  return static_cast<int>(given < 0 ? given + ndim : given);
}

std::vector<std::int64_t> CallArguments::dims(const char* name, Value of) {
  auto out = need<std::vector<std::int64_t>>(name);
  for (std::int64_t& dim : out) {
    require(dim >= -of.ndim() && dim < of.ndim(), what(), ": ", name, " has ", dim,
            ", but the value is ", of.type(), "; give dims from ", -of.ndim(), " to ",
            of.ndim() - 1);
    if (dim < 0) dim += of.ndim();
  }
  std::ranges::sort(out);
  const auto twice = std::ranges::adjacent_find(out);
  require(twice == out.end(), what(), ": ", name, " names dim ", twice == out.end() ? 0 : *twice,
          " twice; name each once");
  return out;
}

CallJson OpenGraph::call(const CallJson& asked) {
  require(broken.empty(), "this graph cannot be used, as a call failed when it was half done; ",
          "write it anew. The call: ", broken);
  require(asked.is_object() && asked.contains("op") && asked["op"].is_string(),
          "a call is an object with the name of its op, as {\"op\": \"relu\", \"x\": \"%3\"}, not ",
          shown_json(asked));
  const auto name = asked["op"].get<std::string>();
  const GraphCall* const call = find_graph_call(name);
  if (call == nullptr) fail(Fault::Usage, unknown_call(name));
  const CallJson given = completed(*call, asked);
  CallArguments arguments(*this, *call, given, where_of(asked));
  const NodeId before = builder.so_far().size();
  const std::size_t states = builder.so_far().states().size();
  try {
    return result_of(call->run(arguments));
  } catch (const std::exception& error) {
    const Graph& graph = builder.so_far();
    if (graph.size() != before || graph.states().size() != states) broken = error.what();
    throw;
  }
}

const Graph& OpenGraph::finished() const {
  require(broken.empty(), "this graph cannot be used, as a call failed when it was half done; ",
          "write it anew. The call: ", broken);
  require(scopes.empty(), "the graph has a scope that has not ended, '", builder.mark().block,
          "'; end it first");
  return builder.so_far();
}

const GraphCall* find_graph_call(std::string_view name) {
  for (const auto& [kind, calls] : kCallKinds) {
    for (const GraphCall& call : calls()) {
      if (call.name == name) return &call;
    }
  }
  return nullptr;
}

const std::string& graph_calls_json() {
  static const std::string all = [] {
    CallJson out = CallJson::array();
    for (const auto& [kind, calls] : kCallKinds) {
      for (const GraphCall& call : calls()) {
        CallJson arguments = CallJson::array();
        for (const Parameter& each : parameters_of(call)) {
          CallJson argument = {{"name", each.name}};
          if (!each.needed) argument["default"] = each.standard;
          arguments.push_back(std::move(argument));
        }
        out.push_back({{"name", call.name}, {"kind", kind}, {"arguments", std::move(arguments)}});
      }
    }
    return out.dump();
  }();
  return all;
}

}  // namespace tessera
