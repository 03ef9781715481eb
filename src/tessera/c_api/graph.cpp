/// The functions of c_api.h that write graphs.

#include "tessera/base/error.h"
#include "tessera/c_api/c_api.h"
#include "tessera/c_api/forward.h"
#include "tessera/c_api/graph_handle.h"
#include "tessera/ir/print.h"

tessera_graph* tessera_graph_new() { return new tessera_graph; }

void tessera_graph_free(tessera_graph* graph) { delete graph; }

int tessera_graph_call(tessera_graph* graph, const char* call) {
  return tessera::kept(*graph, [&] {
    tessera::require(call != nullptr, "no call was given; give JSON, as {\"op\": \"relu\", ...}");
    const auto json = tessera::CallJson::parse(call, nullptr, /*allow_exceptions=*/false);
    tessera::require(!json.is_discarded(), "the call is no JSON");
    graph->result = graph->graph.call(json).dump();
    return 0;
  });
}

int tessera_graph_model(tessera_graph* graph, const char* features) {
  return tessera::kept(*graph, [&] {
    tessera::require(features != nullptr, "no features were given; give JSON");
    graph->result = tessera::called_model_json(*graph, features);
    return 0;
  });
}

int tessera_graph_text(tessera_graph* graph) {
  return tessera::kept(*graph, [&] {
    graph->result = to_text(graph->graph.builder.so_far());
    return 0;
  });
}

const char* tessera_graph_result(const tessera_graph* graph) {
  return tessera::shown(graph->result);
}

const char* tessera_graph_error(const tessera_graph* graph) { return tessera::shown(graph->error); }

const char* tessera_graph_calls() { return tessera::graph_calls_json().c_str(); }
