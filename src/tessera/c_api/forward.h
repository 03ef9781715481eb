#pragma once
/// The loss of a batch as a function of another language writes it.

#include <string>

#include "tessera/c_api/graph_handle.h"
#include "tessera/user_code/model.h"

namespace tessera {

/// The features of a batch, as tessera_program::forward is given them.
std::string batch_json(const Batch& batch);
/// What it sets. Errors: Fault::Usage: it is nothing of that kind.
ModelOutput forward_output(tessera_graph& graph, const char* json);
/// What tessera_graph_model results in. Errors: as of Model::operator(); Fault::Usage: the graph is
/// of no batch.
std::string called_model_json(tessera_graph& graph, const char* features);

}  // namespace tessera
