#include "tessera/config/recorded.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint_manifest.h"
#include "tessera/data/row_labels.h"
#include "tessera/models/family.h"

namespace tessera {

namespace {

/// Steps that --steps admits, and samples far from where 64 bits end.
constexpr std::int64_t kMostSteps = 1'000'000'000'000'000, kMostSamples = 1000 * kMostSteps;

template <typename... Parts>
[[noreturn]] void refuse(const Checkpoint& checkpoint, const Parts&... parts) {
  fail(Fault::Checkpoint, "checkpoint file '", checkpoint.path(), "/", kManifestName,
       "': ", parts..., "; restore it from a copy or use another checkpoint");
}

const std::string& recorded(const Checkpoint& checkpoint, const char* name) {
  const auto& texts = checkpoint.record().texts;
  const auto found = texts.find(name);
  if (found == texts.end())
    fail(Fault::Checkpoint, "'", checkpoint.path(), "' has no text '", name,
         "', so it is not a checkpoint of `tessera train`; give another one");
  return found->second;
}

std::map<std::string, std::string> recorded_fields(const Checkpoint& checkpoint) {
  const auto json = nlohmann::json::parse(recorded(checkpoint, kRecordedConfig), nullptr, false);
  if (!json.is_object()) refuse(checkpoint, "its configuration is not a list of texts");
  std::map<std::string, std::string> out;
  for (auto it = json.begin(); it != json.end(); ++it) {
    if (!it->is_string()) refuse(checkpoint, "'", it.key(), "' of its configuration is not a text");
    out[it.key()] = it->get<std::string>();
  }
  return out;
}

/// By the code that judges flags.
void check_config(const Checkpoint& checkpoint, RunConfig config, RecordedUse use) {
  if (use == RecordedUse::Weights) {
    config.optimizer = {};
    complete(config);
  }
  Problems problems;
  if (config.model.vocabulary == 0)
    problems.add("vocab-size is 0; the model of a checkpoint has a vocabulary");
  find_problems(config, problems);
  // Each layer has parameters.
  const auto tensors = static_cast<std::int64_t>(checkpoint.tensors().size());
  if (problems.empty() && layer_count(config.model) > tensors)
    problems.add(
        text("layers is ", layer_count(config.model), ", but it has ", tensors, " tensors"));
  if (problems.empty()) return;
  std::vector<std::string> all;
  for (const Error& error : problems.list()) all.emplace_back(error.what());
  refuse(checkpoint, "its recorded configuration is not valid: ", join(all, "; "));
}

/// Its weights mean today what they meant when they were trained.
void check_meaning(const Checkpoint& checkpoint, const ModelConfig& model) {
  const std::vector<std::string_view> changes = model.family->changes(model);
  const auto& texts = checkpoint.record().texts;
  const auto found = texts.find(kRecordedChanges);
  std::int64_t known = 0;  // when it was written
  if (found != texts.end() &&
      std::from_chars(found->second.data(), found->second.data() + found->second.size(), known)
              .ec != std::errc())
    known = -1;
  const std::int64_t now = std::ssize(changes);
  if (known == now) return;
  const std::string_view what = known < now && known >= 0 ? changes[static_cast<std::size_t>(known)]
                                                          : "a newer version wrote it";
  fail(Fault::Checkpoint, "checkpoint '", checkpoint.path(), "' has weights of family ",
       model.family, " that mean something else in this version of Tessera: ", what,
       "; use the version that trained them, or train again");
}

void check_counters(const Checkpoint& checkpoint) {
  const CheckpointRecord& record = checkpoint.record();
  if (record.step > kMostSteps)
    refuse(checkpoint, "its step ", record.step, " is above ", kMostSteps);
  if (record.samples > kMostSamples)
    refuse(checkpoint, "its samples ", record.samples, " are above ", kMostSamples);
  for (const TensorEntry& entry : checkpoint.tensors()) {
    if (entry.role != Role::Counter || entry.type != TensorType{DType::I64, {}, {}}) continue;
    std::int64_t count = 0;
    checkpoint.read(entry.name, std::as_writable_bytes(std::span(&count, 1)));
    if (entry.name == kSamplesState && count != record.samples)
      refuse(checkpoint, "its counter '", entry.name, "' is ", count, " but ", record.samples,
             " samples were consumed");
    const std::int64_t most = std::max(record.step, record.samples);  // all count one or the other
    if (count < 0 || count > most)
      refuse(checkpoint, "its counter '", entry.name, "' is ", count, ", not from 0 to ", most);
  }
}

}  // namespace

RecordedRun recorded_run(const Checkpoint& checkpoint, const OwnFamilies& families,
                         RecordedUse use) {
  std::map<std::string, std::string> fields = recorded_fields(checkpoint);
  const std::string where = text("checkpoint file '", checkpoint.path(), "/", kManifestName, "'");
  RecordedRun out{config_of(fields, where, families), std::move(fields),
                  Vocabulary::from_json(recorded(checkpoint, kRecordedVocabulary),
                                        text(checkpoint.path(), "/", kManifestName)),
                  recorded(checkpoint, kRecordedData)};
  const auto& texts = checkpoint.record().texts;
  if (const auto held_out = texts.find(kRecordedHeldOut); held_out != texts.end())
    out.held_out = held_out->second;
  if (const auto labels = checkpoint.record().texts.find(kRecordedLabels);
      labels != checkpoint.record().texts.end())
    out.labels = parse_label_names(labels->second, where);
  if (const auto ids = checkpoint.record().texts.find(kRecordedIds);
      ids != checkpoint.record().texts.end())
    out.ids = ids->second;
  complete(out.config);
  check_config(checkpoint, out.config, use);
  check_meaning(checkpoint, out.config.model);
  const ModelConfig& model = out.config.model;
  const std::int64_t least = vocabulary_for(model, out.vocabulary);
  if (least > model.vocabulary)
    refuse(checkpoint, "its vocabulary has ", least, " tokens but its model ", model.vocabulary);
  check_counters(checkpoint);
  return out;
}

std::string recorded_hub_config(const Checkpoint& checkpoint) {
  const auto& texts = checkpoint.record().texts;
  const auto found = texts.find(kRecordedHubConfig);
  return found == texts.end() ? "" : found->second;
}

CheckpointJudge recorded_run_judge(const OwnFamilies& families, RecordedUse use) {
  return [families, use](const Checkpoint& checkpoint) {
    if (checkpoint.record().texts.contains(kRecordedConfig))
      recorded_run(checkpoint, families, use);
  };
}

}  // namespace tessera
