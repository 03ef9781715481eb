/// The functions of c_api.h that compile and run steps.

#include <algorithm>
#include <cstring>
#include <optional>

#include "tessera/base/error.h"
#include "tessera/c_api/c_api.h"
#include "tessera/c_api/compiled_step.h"
#include "tessera/c_api/graph_handle.h"
#include "tessera/ir/strategy.h"
#include "tessera/models/parallel.h"
#include "tessera/tensor/type_fits.h"

struct tessera_step : tessera::Kept {
  std::optional<tessera::CompiledStep> compiled;
  std::map<std::string, tessera::HostTensor> arrays;  // that can be read

  tessera::CompiledStep& running() {
    tessera::require(compiled.has_value(), "the step is not compiled; compile it first");
    return *compiled;
  }
};

namespace tessera {

namespace {

CallJson parsed_json(const char* text) {
  require(text != nullptr, "no JSON was given");
  CallJson out = CallJson::parse(text, nullptr, /*allow_exceptions=*/false);
  require(out.is_object(), "what was given is no JSON object");
  return out;
}

GivenArray given_array(const tessera_array& array) {
  require(array.name != nullptr && array.dtype != nullptr && array.data != nullptr &&
              array.ndim >= 0 && (array.ndim == 0 || array.shape != nullptr),
          "an array has no name, dtype, shape or data; give them");
  require(array.ndim <= Shape::kMaxDims, "array '", array.name, "' has ", array.ndim,
          " dims; give at most ", Shape::kMaxDims);
  GivenArray out{array.name, parse_dtype(array.dtype), {}, nullptr};
  for (int dim = 0; dim < array.ndim; ++dim) out.shape.push_back(array.shape[dim]);
  require(fits({out.dtype, out.shape, {}}), "array '", array.name, "' has the shape ", out.shape,
          "; give one that there can be");
  out.data = static_cast<const std::byte*>(array.data);
  return out;
}

std::vector<GivenArray> given_arrays(const tessera_array* arrays, int count) {
  std::vector<GivenArray> out;
  for (int i = 0; i < count; ++i) out.push_back(given_array(arrays[i]));
  return out;
}

/// What can be read with tessera_step_read.
std::string arrays_json(const std::map<std::string, HostTensor>& arrays) {
  CallJson out = CallJson::object();
  for (const auto& [name, tensor] : arrays)
    out[name] = {{"shape", std::vector<std::int64_t>(tensor.shape().begin(), tensor.shape().end())},
                 {"dtype", to_text(tensor.dtype())}};
  return CallJson{{"arrays", std::move(out)}}.dump();
}

/// Where all lies, without devices.
std::string placement_json(const StepRequest& request) {
  const auto main = std::ranges::find_if(
      request.sources, [](const ProgramSource& source) { return source.name != "init"; });
  CallJson pins = CallJson::object();
  for (const Pin& pin : main->strategy.pins) pins[pin.values] = to_text(pin.sharding);
  CallJson out = {{"mesh", mesh_text(main->strategy)}, {"pins", std::move(pins)}};
  if (request.search)
    out["search"] = {{"step_seconds", request.search->step_seconds},
                     {"bound", request.search->bound},
                     {"bytes", request.search->bytes}};
  return out.dump();
}

StepRequest request_of(tessera_graph* const* graphs, int count, CallJson how) {
  CallFields names(how, "compile");
  std::vector<std::string> given;
  names.get("names", given);
  require(std::ssize(given) == count, "compile: there are ", count, " graphs and ", given.size(),
          " names; give each graph a name");
  std::vector<NamedGraph> all;
  for (int i = 0; i < count; ++i) {
    require(graphs[i] != nullptr, "compile: a graph is null; give a graph");
    all.push_back({given[static_cast<std::size_t>(i)], &graphs[i]->graph});
  }
  how.erase("names");
  return step_request(how, all);
}

/// What other than running and arrays a step is asked for.
std::string done(tessera_step& step, const CallJson& asked) {
  CallFields fields(asked, "step");
  const auto what = fields.need<std::string>("do");
  std::string path;
  if (what != "states") path = fields.need<std::string>("path");
  fields.finish();
  if (what == "states") {
    step.arrays = step.running().states();
    return arrays_json(step.arrays);
  }
  if (what == "save") return CallJson{{"path", step.running().save(path)}}.dump();
  require(what == "load", "step: do is '", what, "'; it can be states, save or load");
  step.running().load(path);
  return "{}";
}

}  // namespace

}  // namespace tessera

tessera_step* tessera_step_new() { return new tessera_step; }

void tessera_step_free(tessera_step* step) { delete step; }

int tessera_step_compile(tessera_step* step, tessera_graph* const* graphs, int count,
                         const char* how) {
  return tessera::kept(*step, [&] {
    tessera::require(!step->compiled, "the step is compiled already; make a new one");
    step->compiled.emplace(tessera::request_of(graphs, count, tessera::parsed_json(how)));
    step->result = step->compiled->report().dump();
    return 0;
  });
}

int tessera_step_place(tessera_step* step, tessera_graph* const* graphs, int count,
                       const char* how) {
  return tessera::kept(*step, [&] {
    step->result =
        tessera::placement_json(tessera::request_of(graphs, count, tessera::parsed_json(how)));
    return 0;
  });
}

int tessera_step_run(tessera_step* step, const char* program, const tessera_array* inputs,
                     int count) {
  return tessera::kept(*step, [&] {
    tessera::require(program != nullptr, "no program was named");
    step->arrays.clear();
    step->running().run(program, tessera::given_arrays(inputs, count));
    step->arrays = step->running().outputs();
    step->result = tessera::arrays_json(step->arrays);
    return 0;
  });
}

int tessera_step_call(tessera_step* step, const char* call) {
  return tessera::kept(*step, [&] {
    step->arrays.clear();
    step->result = tessera::done(*step, tessera::parsed_json(call));
    return 0;
  });
}

int tessera_step_write(tessera_step* step, const tessera_array* parameters, int count) {
  return tessera::kept(*step, [&] {
    step->running().set_parameters(tessera::given_arrays(parameters, count));
    return 0;
  });
}

int tessera_step_read(tessera_step* step, const char* name, void* into, int64_t bytes) {
  return tessera::kept(*step, [&] {
    const auto found = name == nullptr ? step->arrays.end() : step->arrays.find(name);
    tessera::require(found != step->arrays.end(), "there is no array '",
                     name == nullptr ? "" : name,
                     "' to be read; each can be read once, after the call that made it");
    const std::span<const std::byte> from = std::as_const(found->second).bytes();
    tessera::require(std::ssize(from) == bytes && (into != nullptr || bytes == 0), "array '", name,
                     "' has ", from.size(), " bytes, not ", bytes, "; give room for these");
    if (bytes > 0) std::memcpy(into, from.data(), from.size());
    step->arrays.erase(found);
    return 0;
  });
}

const char* tessera_step_result(const tessera_step* step) { return tessera::shown(step->result); }

const char* tessera_step_error(const tessera_step* step) { return tessera::shown(step->error); }
