#include "tessera/user_code/model.h"

#include <algorithm>
#include <utility>

#include "tessera/apps/model_names.h"
#include "tessera/base/text.h"
#include "tessera/config/fields.h"
#include "tessera/ops/elementwise.h"
#include "tessera/ops/shape_ops.h"
#include "tessera/ops/softmax.h"

namespace tessera {

namespace {

Task own_task(const ModelConfig&) {
  Task out;
  out.name = "own";
  out.tokens = 1;
  out.measure = [](const TaskValues&, const Pass&) -> Measured {
    fail(Fault::Usage, "model(batch): with own_layers() there is no model to call; compute the ",
         "loss directly from the batch");
  };
  return out;
}

constexpr FamilyTask kOwnTasks[] = {{{"own", "what the program computes"}, own_task}};

/// What layers may be made of.
constexpr ReadField kOwnReads[] = {{"layers"},    {"heads"},    {"kv-heads"},   {"width"},
                                   {"ffn-width"}, {"context"},  {"vocab-size"}, {"dropout"},
                                   {"classes"},   {"norm-eps"}, {"init-std"}};

constexpr ModelFamily kOwnLayers = {
    .name = "own-layers",
    .doc = "layers of a program",
    .reads = kOwnReads,
    .tasks = kOwnTasks,
    .stacks = [](const ModelConfig&) -> std::vector<LayerStack> { return {}; },
};

/// What the cross entropies behind node `first` are taken of: the predictions of a head that names
/// none. Two are those of a model that also tells whether a text follows another.
std::vector<NamedValue> scored_logits(Builder& builder, NodeId first) {
  std::vector<Value> found;
  for (NodeId id = first; id < builder.so_far().size(); ++id) {
    const Node& node = builder.so_far().node(id);
    if (node.op == &kCrossEntropy) found.emplace_back(builder, node.inputs[0]);
  }
  if (found.size() == 1) return {{"logits", found[0]}};
  if (found.size() != 2) return {};
  return {{"prediction_logits", found[0]}, {"seq_relationship_logits", found[1]}};
}

std::string names_of(const TaskValues& values) {
  std::vector<std::string> out;
  for (const auto& [name, value] : values) out.push_back(name);
  return join(out);
}

}  // namespace

Batch::Batch(TaskValues values, bool of_task) : values_(std::move(values)), of_task_(of_task) {
  const auto found = values_.find(kIsSample);
  if (found == values_.end()) return;
  is_sample_ = found->second;
  values_.erase(found);
}

Value Batch::is_sample(int ndim) const {
  require(is_sample_.valid(), "batch.is_sample(): the data comes from flags, and its labels mark ",
          "padding; return datasets from train_valid_test_datasets_provider, or leave it out");
  Shape shape = is_sample_.shape();
  while (shape.ndim() < ndim) shape.push_back(1);
  return ndim == 1 ? is_sample_ : reshape(is_sample_, shape);
}

Value Batch::operator[](std::string_view name) const {
  const auto found = values_.find(name);
  require(found != values_.end(), "the batch has no feature '", name, "'; it has ",
          names_of(values_));
  return found->second;
}

Value ModelOutput::operator[](std::string_view name) const {
  const auto found = std::ranges::find(predictions, name, &NamedValue::name);
  std::vector<std::string> names;
  for (const NamedValue& known : predictions) names.push_back(known.name);
  require(found != predictions.end(), "the model predicts no '", name, "'; it predicts ",
          names.empty() ? "nothing" : join(names));
  return found->value;
}

Mean Loss::mean(std::int64_t samples) const {
  require(sum_.valid(), "run_forward_step returned no loss; return a scalar value, or a mean");
  require(sum_.shape().ndim() == 0, "the loss is of shape ", sum_.shape(),
          "; return a scalar, as sum_all(x), or a mean, as masked_mean(losses, mask)");
  if (count_.valid()) return {sum_, count_};
  const double count = static_cast<double>(samples);
  return {sum_ * count, sum_.builder().constant(count, DType::F32)};
}

/// The feature that is this input, by our name or Hugging Face's. Errors: as of model(batch).
Value Model::read(const Batch& batch, const CallInput& asked) const {
  const TaskInput& input = asked.input;
  const std::string_view name = batch.contains(input.name) ? input.name : asked.hub;
  require(batch.contains(name), "model(batch): family ", config_.family, " with task ", task_.name,
          " reads '", input.name, "'", name == input.name ? "" : text(" (also '", name, "')"),
          ", and the batch has ", names_of(batch.values()),
          "; give the dataset such a feature, or ",
          "compute with model.logits(ids) or layers of your own");
  Value value = batch[name];
  Shape wanted{value.shape().ndim() == 0 ? 0 : value.shape()[0]};
  for (const std::int64_t size : input.sample) wanted.push_back(size);
  if (value.shape().ndim() == 1 && input.sample == Shape({1})) value = reshape(value, wanted);
  require(value.shape() == wanted && value.dtype() == input.dtype, "model(batch): feature '", name,
          "' is ", value.dtype(), value.shape(), ", and family ", config_.family, " with task ",
          task_.name, " reads ", input.dtype, wanted,
          value.shape() != wanted
              ? "; pad or cut it in the dataset's get(), or give another --seq-length"
          : input.dtype == DType::I32 ? "; give whole numbers"
                                      : "; give fractions",
          value.dtype() != input.dtype && name == "labels" ? kTasksOfLabels : "");
  return value;
}

ModelOutput Model::operator()(const Batch& batch) const {
  if (called_ != nullptr) *called_ = true;
  const ModelCall call = model_call(config_, task_);
  TaskValues inputs;
  for (const CallInput& asked : call.inputs) {
    if (asked.needed || batch.contains(asked.input.name) || batch.contains(asked.hub))
      inputs.emplace(asked.input.name, read(batch, asked));
  }
  if (call.adapt && !batch.of_task()) call.adapt(inputs);
  const Measured measured = task_.measure(inputs, pass_);
  const std::vector<Mean>& means = measured.means;
  std::vector<std::size_t> weighted;
  for (std::size_t i = 0; i < means.size(); ++i)
    if (task_.means[i].weight != 0) weighted.push_back(i);
  const bool one = weighted.size() == 1 && task_.means[weighted[0]].weight == 1;
  if (one) return {Loss(means[weighted[0]]), measured.predictions};
  ModelOutput out(Loss(loss_of(task_, means)), measured.predictions);
  for (const std::size_t i : weighted) out.parts.push_back(means[i]);
  return out;
}

ModelOutput Model::with_logits(const Batch& batch) const {
  require(!batch.values().empty(), "model(batch): the batch has no features");
  Builder& builder = batch.values().begin()->second.builder();
  const NodeId first = builder.so_far().size();
  ModelOutput out = (*this)(batch);
  if (out.predictions.empty()) out.predictions = scored_logits(builder, first);
  return out;
}

Value Model::logits(Value ids) const {
  require(task_.text.has_value() && task_.text->source == 0, "model.logits(ids): family ",
          config_.family, " with task ", task_.name,
          " is not a model that predicts the next token; call model(batch)");
  return task_.text->logits(ids, pass_);
}

ModelChoice ModelChoice::from_pretrained(std::string name) {
  ModelChoice out;
  out.pretrained_ = std::move(name);
  return out;
}

ModelChoice ModelChoice::own_layers() { return ModelChoice(kOwnLayers); }

void ModelChoice::apply(RunConfig& config) const {
  if (family_ != nullptr && family_->name != config.model.family.name()) {
    RunConfig theirs;
    theirs.model = published(find_model(family_->name, config.families));
    config.model.family = theirs.model.family;
    for (const Field& field : fields()) {
      if (field.group == FieldGroup::Model && field.name != "family" &&
          config.defaulted.contains(field.name))
        copy_field(field, config, theirs);
    }
  }
  if (!pretrained_.empty()) config.init_from = model_folder(pretrained_);
}

}  // namespace tessera
