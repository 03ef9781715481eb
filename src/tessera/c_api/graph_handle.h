#pragma once
/// What a tessera_graph of c_api.h is.

#include "tessera/c_api/graph_calls.h"
#include "tessera/c_api/kept.h"
#include "tessera/user_code/model.h"

struct tessera_graph : tessera::Kept {
  tessera_graph() = default;
  /// Of the loss of a batch: what model(batch) computes there. `trains`: without labels the model
  /// has no loss.
  tessera_graph(tessera::Builder& of, const tessera::Model& model, const tessera::Batch& batch,
                bool trains)
      : graph(of), model(&model), batch(&batch), trains(trains) {}

  tessera::OpenGraph graph;
  const tessera::Model* model = nullptr;  // null: the graph is the program's own
  const tessera::Batch* batch = nullptr;
  bool trains = false;
};
