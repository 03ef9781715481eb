#pragma once
/// The saves of a run, one at a time: in the background, from a copy, while training goes on; or at
/// once.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <future>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tessera/comm/communicator.h"
#include "tessera/train/checkpoint.h"

namespace tessera {

/// What became of a save. That a disk is full or broken is a result, not an exception: the run goes
/// on.
struct SaveResult {
  std::int64_t step = 0;
  std::string path;                       // of the checkpoint; empty where the save failed
  std::string problem;                    // why it failed, and what to do; empty where it did not
  std::vector<std::string> notices = {};  // what went wrong after the commit
};

class CheckpointSaver {
 public:
  /// Saves into `folder`. A copy takes `copy_bytes`, all of a run's tensors; the memory is touched
  /// here, so that a machine that lacks it says so before the first step. 0: no save is in the
  /// background. The thread inherits the cores of the caller, so make it before a device pins that
  /// one. `world`: other ranks, which may wait for this one while it saves. Errors:
  /// Fault::Resource: no memory.
  CheckpointSaver(std::string folder, SaveOptions options, std::int64_t copy_bytes,
                  Communicator* world = nullptr);
  /// Waits for the save that is under way.
  ~CheckpointSaver();
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  /// Saves now. No save is under way.
  SaveResult save(const CheckpointRecord& record, std::span<const CheckpointTensor> tensors);
  /// Copies the tensors and saves the copy in the background; without a copy, saves now. The result
  /// of the last one was taken.
  void begin(const CheckpointRecord& record, std::span<const CheckpointTensor> tensors);
  /// Takes the result of begin(); none while the save goes on, and where none was begun.
  std::optional<SaveResult> finished();
  /// The same, once it is there.
  std::optional<SaveResult> wait();

 private:
  SaveResult save_to_disk(const CheckpointRecord& record,
                          std::span<const CheckpointTensor> tensors) const;
  void work();

  std::string folder_;
  SaveOptions options_;
  Communicator* world_;
  std::vector<std::byte> copy_;
  std::future<SaveResult> result_;  // of the save that was begun

  std::mutex mutex_;
  std::condition_variable changed_;
  std::packaged_task<SaveResult()> task_;  // waits for the thread
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace tessera
