#include "tessera/apps/writer.h"

#include <algorithm>
#include <new>

#include "tessera/apps/found_run.h"
#include "tessera/base/text.h"
#include "tessera/config/fields.h"
#include "tessera/config/recorded.h"
#include "tessera/device/device.h"
#include "tessera/launch/out_of_memory.h"
#include "tessera/models/family.h"
#include "tessera/train/adapter_base.h"
#include "tessera/train/programs.h"

namespace tessera {

namespace {

/// One text leaves data parallel devices nothing to do.
void find_mesh_problems(const ParallelConfig& parallel, const ModelConfig& model,
                        Problems& problems) {
  problems.add(tessera::problems(parallel, model));
  if (!problems.empty() || parallel.data() == 1) return;
  problems.add(text("devices ", parallel.devices, " is more than tensor-model-parallel-size ",
                    parallel.tensor, " x pipeline-model-parallel-size ", parallel.pipeline,
                    "; raise one of these, or give devices ", parallel.tensor * parallel.pipeline));
}

/// On the machine that was asked for.
Evaluation open_weights(const std::string& path, const RunConfig& asked) {
  if (PretrainedModel::is_at(path)) {
    Evaluation out = open_pretrained(path, asked);
    const std::vector<std::string> more = out.pretrained->notices_of_writing();
    out.notices.insert(out.notices.end(), more.begin(), more.end());
    out.config = on_devices_of(out.config, asked);
    return out;
  }
  Evaluation out;
  out.checkpoint.emplace(open_with_base(path));
  RecordedRun recorded = recorded_run(*out.checkpoint, asked.families, RecordedUse::Weights);
  out.config = on_devices_of(recorded.config, asked);
  out.vocabulary = std::move(recorded.vocabulary);
  return out;
}

/// Runs `body`. A want of memory names what could be fewer.
template <typename Body>
void naming_texts(const std::string& fewer, const Body& body) {
  const std::string flags = fewer.empty() ? "or give fewer --threads or --devices" : fewer;
  try {
    body();
  } catch (const Error& error) {
    if (error.fault() != Fault::Resource || fewer.empty()) throw;
    throw error.with(flags);
  } catch (const std::bad_alloc& error) {
    const auto* const ours = dynamic_cast<const OutOfMemory*>(&error);
    fail(Fault::Resource, ours == nullptr ? "out of memory" : ours->what(),
         "; raise the limit (ulimit -v, cgroup), ", flags);
  }
}

}  // namespace

Writer open_writer(const std::string& path, RunConfig& config, Problems& problems) {
  Evaluation model = open_weights(path, config);
  config = model.config;
  const Task task = task_of(config.model);
  if (!task.text)
    fail(Fault::Usage, "'", path, "' is a model of family ", config.model.family,
         ", which writes no text; give one of a family that does");
  find_mesh_problems(config.parallel, config.model, problems);
  TextWriting writing = writing_to_an_end(*task.text, config, model.vocabulary);
  return {std::move(model), std::move(writing)};
}

void limit_context(ModelConfig& model, TextWriting& writing, std::int64_t context) {
  if (model.positions == 0 && reads_field(model, "positions")) model.positions = model.context;
  model.context = std::min(model.context, context);
  writing.context = model.context;
}

WritingRun find_writing(
    Communicator* launched, const WritingWords& asked,
    const std::function<std::int64_t(RunConfig& config, Problems& problems)>& open) {
  const FoundRun found =
      find_run(launched, *asked.command, [&](RunConfig& config, Problems& problems) {
        problems.raise();
        std::int64_t texts = 1;
        naming_intact(asked.path, asked.words,
                      recorded_run_judge(config.families, RecordedUse::Weights),
                      [&] { texts = open(config, problems); });
        return texts;
      });
  WritingRun out{on_devices_of(found.recorded, found.asked), found.texts};
  share_cores(out.config, launched);
  return out;
}

void write_on_ranks(const WritingRun& run, const WritingWords& asked, const std::string& fewer,
                    Communicator* launched, Console& console, const std::optional<Writer>& writer,
                    const std::function<void(TextModel& model, RankGroup& group)>& body) {
  const RunSetup setup(run.config);
  const WantedPrograms wanted{.train = false, .evaluate = false, .texts = run.texts};
  on_ranks(run.config, launched, console, [&](Communicator* world, const Backend& backend) {
    const int rank = world == nullptr ? 0 : world->rank();
    std::optional<RankGroup> made;
    naming_texts(fewer, [&] {
      made.emplace(compile_programs(setup, wanted, backend, rank).plan, backend, world, kFast);
    });
    RankGroup& group = *made;
    if (rank > 0) return group.follow();
    naming_intact(asked.path, asked.words, {}, [&] {
      const Evaluation& model = writer->model;
      if (model.checkpoint) return group.load(*model.checkpoint);
      load_weights(group, model);
    });
    TextModel model(group, writer->writing);
    body(model, group);
    group.stop();
  });
}

}  // namespace tessera
