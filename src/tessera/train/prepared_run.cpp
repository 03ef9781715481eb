/// What a prepared run says of itself, to files and checkpoints.

#include <nlohmann/json.hpp>

#include "tessera/base/text.h"
#include "tessera/comm/work_alone.h"
#include "tessera/config/recorded.h"
#include "tessera/data/dataset.h"
#include "tessera/data/streamed_text.h"
#include "tessera/models/family.h"
#include "tessera/train/adapter_base.h"
#include "tessera/train/output_check.h"
#include "tessera/train/prepare.h"

namespace tessera {

RunConfig PreparedRun::to_repeat() const {
  RunConfig out = given;
  out.resume = RunConfig().resume;
  out.allow_changes = false;
  out.vocabulary = config.vocabulary;  // which a tokenizer tells, too
  return out;
}

void require_same_output(const PreparedRun& run) {
  const std::vector<std::string> now = what_output_holds(run.config.output);
  if (now == run.output_held) return;
  const auto given = [](const std::vector<std::string>& names) {
    return names.empty() ? "nothing of a run" : join(names);
  };
  fail(Fault::Resource, "another run wrote into '", run.config.output,
       "' while this one was being prepared: it held ", given(run.output_held), " and now holds ",
       given(now), "; start again");
}

void record_base(PreparedRun& run, Communicator* world) {
  if (run.pretrained && leaves_base_out(run.config))
    work_alone(world, [&] { run.base = record_of_base(run.config, *run.pretrained); });
}

CheckpointRecord checkpoint_record(const PreparedRun& run, std::int64_t step,
                                   std::int64_t samples) {
  CheckpointRecord out{step, samples, {}};
  out.texts[kRecordedConfig] = nlohmann::json(record_of(run.config)).dump(1);
  out.texts[kRecordedVocabulary] = run.data->vocabulary.to_json();
  out.texts[kRecordedData] = run.data->digest;
  if (!run.ids.empty()) out.texts[kRecordedIds] = run.ids;
  if (!run.data->held_out_digest.empty()) out.texts[kRecordedHeldOut] = run.data->held_out_digest;
  if (!run.data->label_names.empty())
    out.texts[kRecordedLabels] = label_names_json(run.data->label_names);
  if (const StreamedText* const stream = run.data->stream())
    out.texts[kRecordedStream] = stream->place(samples, run.config.model.context);
  if (!run.hub_config.empty()) out.texts[kRecordedHubConfig] = run.hub_config;
  if (!run.base.empty()) out.texts[kRecordedBase] = run.base;
  if (const auto changes = std::ssize(run.config.model.family->changes(run.config.model)))
    out.texts[kRecordedChanges] = text(changes);
  return out;
}

}  // namespace tessera
