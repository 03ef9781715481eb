#include "tessera/c_api/forward.h"

#include "tessera/base/error.h"

namespace tessera {

namespace {

CallJson parsed_object(const char* text, const char* what) {
  CallJson out = text == nullptr ? CallJson() : CallJson::parse(text, nullptr, false);
  require(out.is_object(), what, " is no object of JSON");
  return out;
}

}  // namespace

std::string batch_json(const Batch& batch) {
  CallJson out = CallJson::object();
  for (const auto& [name, value] : batch.values()) out[name] = value_json(value);
  return out.dump();
}

ModelOutput forward_output(tessera_graph& graph, const char* json) {
  graph.graph.finished();
  const CallJson object = parsed_object(json, "what forward sets");
  CallFields fields(object, "forward", &graph.graph.builder);
  std::vector<NamedValue> predictions;
  if (const CallJson* const named = fields.find("predictions")) {
    CallFields values(*named, "forward: predictions", &graph.graph.builder);
    for (const auto& [name, id] : named->items())
      predictions.push_back({name, values.need<Value>(name.c_str())});
  }
  const bool is_mean = fields.find("sum") != nullptr;
  const Loss loss = is_mean ? Loss(Mean{fields.need<Value>("sum"), fields.need<Value>("count")})
                            : Loss(fields.need<Value>("loss"));
  fields.finish();
  return {loss, std::move(predictions)};
}

std::string called_model_json(tessera_graph& graph, const char* features) {
  require(graph.model != nullptr, "the graph is of no batch, so there is no model to call");
  const CallJson object = parsed_object(features, "the features");
  CallFields fields(object, "model(batch)", &graph.graph.builder);
  TaskValues values;
  for (const auto& [name, id] : object.items())
    values.emplace(name, fields.need<Value>(name.c_str()));
  const bool of_task = graph.batch->of_task();
  if (!of_task) values.emplace(kIsSample, graph.batch->is_sample());
  const Batch given(std::move(values), of_task);
  const Model& model = *graph.model;
  const ModelOutput out = model.with_logits(of_task ? given : model.filled(given, true));
  CallJson predictions = CallJson::object();
  for (const NamedValue& each : out.predictions) predictions[each.name] = value_json(each.value);
  if (graph.trains && !of_task && !model.has_labels(given))
    return CallJson{{"loss", nullptr}, {"predictions", predictions}}.dump();
  const Mean mean = out.loss.mean(object.empty() ? 1 : given.values().begin()->second.shape()[0]);
  return CallJson{{"loss", value_json(out.loss.value())},
                  {"sum", value_json(mean.sum)},
                  {"count", value_json(mean.count)},
                  {"predictions", predictions}}
      .dump();
}

}  // namespace tessera
