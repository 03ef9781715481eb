#pragma once
/// What a tessera_graph of c_api.h is.

#include "tessera/c_api/graph_calls.h"
#include "tessera/c_api/kept.h"

struct tessera_graph : tessera::Kept {
  tessera::OpenGraph graph;
};
