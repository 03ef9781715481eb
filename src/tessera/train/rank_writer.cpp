#include "tessera/train/rank_writer.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/start_thread.h"
#include "tessera/base/text.h"

namespace tessera {

namespace {

/// Of the saving thread: it shares the cores with the threads that train, which wait for each other
/// at every kernel.
constexpr int kNice = 10;

std::string prefix_of(int rank, int ranks) {
  return ranks == 1 ? text(kDataPrefix) : text(kDataPrefix, "rank-", rank, "-");
}

/// The same pieces, densely behind each other in `copy`.
std::vector<CheckpointPiece> copied(const RankShares& shares,
                                    const std::vector<CheckpointPiece>& pieces,
                                    std::span<std::byte> copy) {
  std::vector<CheckpointPiece> out;
  for (const CheckpointPiece& piece : pieces) {
    const ManifestTensor& tensor = shares.tensors[piece.tensor];
    const Box cell = tensor.grid.cell(piece.cell);
    const std::int64_t width = size_of(tensor.entry.type.dtype);
    each_cell_run(TensorGrid::whole(cell.extent), Box::whole(cell.extent), piece.strides,
                  [&](const CellRun& run) {
                    std::memcpy(copy.data() + run.from * width, piece.bytes + run.at * width,
                                static_cast<std::size_t>(run.count * width));
                  });
    out.push_back({piece.tensor, piece.cell, copy.data(), cell.extent.strides()});
    copy = copy.subspan(static_cast<std::size_t>(cell.extent.numel() * width));
  }
  return out;
}

}  // namespace

BackgroundThread::BackgroundThread() : thread_(start_thread([this] { work(); })) {}

BackgroundThread::~BackgroundThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

std::future<void> BackgroundThread::run(std::function<void()> task) {
  std::packaged_task<void()> packaged(std::move(task));
  std::future<void> out = packaged.get_future();
  {
    const std::lock_guard lock(mutex_);
    check(!task_.valid(), "two tasks wait for the background thread");
    task_ = std::move(packaged);
  }
  changed_.notify_one();
  return out;
}

void BackgroundThread::work() {
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
  for (;;) {
    std::packaged_task<void()> task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || task_.valid(); });
      if (!task_.valid()) return;
      std::swap(task, task_);
    }
    task();
  }
}

std::string to_text(const RankResult& result) {
  return result.problem.empty() ? "written\n" + to_text(result.part) : result.problem;
}

RankResult parse_rank_result(std::string_view text) {
  constexpr std::string_view kWritten = "written\n";
  if (!text.starts_with(kWritten)) return {{}, std::string(text)};
  return {parse_part(text.substr(kWritten.size())), ""};
}

RankWriter::RankWriter(const Plan& plan, const SaveOptions& options,
                       std::unique_ptr<BackgroundThread> background)
    : shares_(share_among_ranks(plan, options.file_bytes, options.left_out)),
      options_(options),
      prefix_(prefix_of(plan.rank, static_cast<int>(plan.ranks()))),
      leads_(plan.rank == 0),
      background_(std::move(background)) {
  if (background_ == nullptr) return;
  const std::int64_t bytes = shares_.bytes_of(plan.rank);
  try {
    copy_.resize(static_cast<std::size_t>(bytes));
  } catch (const std::bad_alloc&) {
    fail(Fault::Resource, "no memory for a copy of the state to save from, ", bytes_text(bytes),
         "; give --no-background-save, so that training waits for saves");
  }
}

void RankWriter::begin(const std::string& folder, std::vector<CheckpointPiece> pieces, bool now) {
  check(!done_.valid(), "a save begins while another one is under way");
  if (now || background_ == nullptr) {
    std::packaged_task<void()> task([&] { result_ = write(folder, pieces); });
    done_ = task.get_future();
    return task();
  }
  done_ = background_->run(
      [this, folder, from = copied(shares_, pieces, copy_)] { result_ = write(folder, from); });
}

bool RankWriter::finished() const {
  return done_.valid() && done_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

std::vector<WrittenPart> RankWriter::planned() const {
  std::vector<WrittenPart> out;
  for (int rank = 0; rank < shares_.ranks; ++rank) {
    std::vector<CheckpointPiece> pieces;
    for (const RankShares::Cell& cell : shares_.cells) {
      if (cell.rank == rank) pieces.push_back({cell.tensor, cell.cell, nullptr, {}});
    }
    out.push_back(
        planned_part(prefix_of(rank, shares_.ranks), shares_.tensors, pieces, options_.file_bytes));
  }
  return out;
}

RankResult RankWriter::take() {
  check(done_.valid(), "no save was begun");
  done_.get();
  return std::exchange(result_, {});
}

RankResult RankWriter::write(const std::string& folder,
                             const std::vector<CheckpointPiece>& pieces) const {
  try {
    RankResult out{
        write_part(options_.calls, folder, prefix_, shares_.tensors, pieces, options_.file_bytes),
        ""};
    if (!leads_) flush_folder(options_.calls, folder);  // the leader flushes when it commits
    return out;
  } catch (const Error& error) {
    if (error.fault() != Fault::Resource) throw;
    return {{}, error.what()};
  }
}

}  // namespace tessera
