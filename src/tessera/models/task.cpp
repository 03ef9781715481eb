#include "tessera/models/task.h"

#include "tessera/ops/elementwise.h"

namespace tessera {

void set_samples(
    Task& task, const std::function<std::unique_ptr<Samples>(const Dataset& data, DataPart part,
                                                             const SampleChoices& choices)>& make) {
  task.train_samples = [make](const Dataset& data, const SampleChoices& choices) {
    return make(data, DataPart::Train, choices);
  };
  task.valid_samples = [make](const Dataset& data, const SampleChoices& choices) {
    return make(data, DataPart::Valid, choices);
  };
}

std::vector<DataKind> data_taken(const Task& task) {
  std::vector<DataKind> out = {task.data};
  if (task.token_files) out.push_back(DataKind::TokenFiles);
  return out;
}

TaskValues inputs_of(const Task& task, Builder& builder, std::int64_t batch) {
  TaskValues out;
  for (const TaskInput& input : task.inputs) {
    Shape shape{batch};
    for (const std::int64_t size : input.sample) shape.push_back(size);
    out.emplace(input.name, builder.batch(input.name, {input.dtype, shape, {}}));
  }
  return out;
}

Value loss_of(const Task& task, const std::vector<Mean>& means) {
  check(means.size() == task.means.size(), "task ", task.name, " measures ", means.size(),
        " means and names ", task.means.size());
  Value out;
  for (std::size_t i = 0; i < means.size(); ++i) {
    const double weight = task.means[i].weight;
    if (weight == 0) continue;
    const Value mean = means[i].value(), term = weight == 1 ? mean : mean * weight;
    out = out.valid() ? out + term : term;
  }
  require(out.valid(), "task ", task.name, " has no loss; give one of its means a weight");
  return out;
}

}  // namespace tessera
