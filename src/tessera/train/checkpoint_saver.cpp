#include "tessera/train/checkpoint_saver.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/comm/work_alone.h"

namespace tessera {

namespace {

/// Of the saving thread: it shares the cores with the threads that train, which wait for each other
/// at every kernel.
constexpr int kNice = 10;

}  // namespace

CheckpointSaver::CheckpointSaver(std::string folder, SaveOptions options, std::int64_t copy_bytes,
                                 Communicator* world)
    : folder_(std::move(folder)), options_(std::move(options)), world_(world) {
  try {
    copy_.resize(static_cast<std::size_t>(copy_bytes));
  } catch (const std::bad_alloc&) {
    fail(Fault::Resource, "no memory for a copy of the state to save from, ",
         bytes_text(copy_bytes), "; give --no-background-save, which lets training wait for saves");
  }
  if (!copy_.empty()) thread_ = std::thread([this] { work(); });
}

CheckpointSaver::~CheckpointSaver() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

SaveResult CheckpointSaver::save(const CheckpointRecord& record,
                                 std::span<const CheckpointTensor> tensors) {
  check(!result_.valid(), "a save begins while another one is under way");
  SaveResult out;
  work_alone(world_, [&] { out = save_to_disk(record, tensors); });
  return out;
}

SaveResult CheckpointSaver::save_to_disk(const CheckpointRecord& record,
                                         std::span<const CheckpointTensor> tensors) const {
  SaveResult out;
  out.step = record.step;
  SaveOptions options = options_;
  options.notices = &out.notices;
  try {
    out.path = save_checkpoint(folder_, record, tensors, options);
  } catch (const Error& error) {
    if (error.fault() != Fault::Resource) throw;
    out.problem = error.what();
  }
  return out;
}

void CheckpointSaver::begin(const CheckpointRecord& record,
                            std::span<const CheckpointTensor> tensors) {
  check(!result_.valid(), "a save begins while another one is under way");
  std::vector<CheckpointTensor> copies(tensors.begin(), tensors.end());
  std::span<std::byte> free = copy_;
  for (CheckpointTensor& tensor : copies) {
    if (copy_.empty()) break;  // saved now, from where they are
    check(tensor.bytes.size() <= free.size(), "no room for a copy of ", tensor.name);
    if (!tensor.bytes.empty()) std::memcpy(free.data(), tensor.bytes.data(), tensor.bytes.size());
    tensor.bytes = free.first(tensor.bytes.size());
    free = free.subspan(tensor.bytes.size());
  }
  std::packaged_task<SaveResult()> task(
      [this, record, copies = std::move(copies)] { return save_to_disk(record, copies); });
  result_ = task.get_future();
  if (copy_.empty()) return work_alone(world_, [&] { task(); });
  {
    const std::lock_guard lock(mutex_);
    task_ = std::move(task);
  }
  changed_.notify_one();
}

std::optional<SaveResult> CheckpointSaver::finished() {
  using namespace std::chrono_literals;
  if (!result_.valid() || result_.wait_for(0s) != std::future_status::ready) return {};
  return result_.get();
}

std::optional<SaveResult> CheckpointSaver::wait() {
  if (!result_.valid()) return {};
  work_alone(world_, [&] { result_.wait(); });
  return result_.get();
}

void CheckpointSaver::work() {
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
  for (;;) {
    std::packaged_task<SaveResult()> task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || task_.valid(); });
      if (!task_.valid()) return;
      std::swap(task, task_);
    }
    task();
  }
}

}  // namespace tessera
