#include "tessera/models/parameter_shapes.h"

#include "tessera/ir/builder.h"
#include "tessera/models/family.h"

namespace tessera {

std::map<std::string, Shape, std::less<>> parameter_shapes(const ModelConfig& config) {
  const Task task = task_of(config);
  Builder builder;
  task.measure(inputs_of(task, builder, 1), {});
  std::map<std::string, Shape, std::less<>> out;
  for (const State& state : builder.so_far().states()) {
    if (is_of_model(state.role)) out.emplace(state.path, builder.so_far().type(state.value).shape);
  }
  return out;
}

}  // namespace tessera
