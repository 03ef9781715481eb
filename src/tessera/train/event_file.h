#pragma once
/// What a run writes for TensorBoard.

#include <memory>
#include <string>

#include "tessera/checkpoint/appended_file.h"
#include "tessera/config/config.h"
#include "tessera/files/event_record.h"
#include "tessera/train/callbacks.h"

namespace tessera {

/// A file events.out.tfevents.SECONDS.HOST.PID with the scalars of steps and validations, each
/// written at once. A run that goes on has a file of its own beside those of before, and says in it
/// which steps it does again, so that TensorBoard shows them once. docs/reference/files.md has the tags.
class EventFile : public TrainCallback {
 public:
  /// Makes `folder` and the file; `step` is the last one that was done before.
  /// Errors: Fault::Resource: they cannot be made.
  EventFile(const std::string& folder, std::int64_t step, const FileCalls& calls = {});

  void on_step(const StepRecord& record) override;
  void on_valid(std::int64_t step, double loss, const NamedMeans& means) override;

  void on_eval(const EvalRecord& record) override;
  void on_test(const TestRecord& record) override;

  AppendedFile& file() { return *file_; }
  /// Puts all on disk. Returns what to tell where that fails; empty: nothing.
  std::string finish();

 private:
  std::unique_ptr<AppendedFile> file_;
  EvalRecord judged_ = {.step = -1};  // the last; the validation of its step has the same means
};

/// That of a run that goes on from `step`; nullptr where it has no tensorboard_dir.
std::unique_ptr<EventFile> event_file(const RunConfig& config, std::int64_t step,
                                      const FileCalls& calls);

}  // namespace tessera
