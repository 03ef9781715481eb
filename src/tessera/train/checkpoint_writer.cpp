#include "tessera/train/checkpoint_writer.h"

#include <chrono>
#include <filesystem>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint_folder.h"

namespace tessera {

namespace {

/// Runs `what`; the message of a failure that the run survives, or "".
template <typename What>
std::string problem_of(const What& what) {
  try {
    what();
    return "";
  } catch (const Error& error) {
    if (error.fault() != Fault::Resource) throw;
    return error.what();
  }
}

}  // namespace

CheckpointWriter::CheckpointWriter(std::string folder, SaveOptions options, RankGroup& group,
                                   RankWriter& mine)
    : folder_(std::move(folder)), options_(std::move(options)), group_(group), mine_(mine) {}

CheckpointWriter::~CheckpointWriter() {
  try {
    if (group_.ranks() == 1) wait();
  } catch (const std::exception&) {  // the run fails already
  }
  if (committed_.valid()) committed_.wait();
}

SaveResult CheckpointWriter::save(const CheckpointRecord& record) {
  start(record, true);
  return *wait();
}

void CheckpointWriter::begin(const CheckpointRecord& record) {
  start(record, mine_.background() == nullptr);
}

std::optional<SaveResult> CheckpointWriter::finished() {
  if (now_) return wait();
  if (stage_ == Stage::Writing && group_.shares_written()) collect();
  const bool ready = stage_ == Stage::Committing &&
                     committed_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  if (stage_ != Stage::Done && !ready) return {};
  return take();
}

std::optional<SaveResult> CheckpointWriter::wait() {
  if (stage_ == Stage::None) return {};
  if (stage_ == Stage::Writing) collect();
  return take();
}

/// Lets all ranks write, into a folder that the leader makes and locks.
void CheckpointWriter::start(const CheckpointRecord& record, bool now) {
  check(stage_ == Stage::None, "a save begins while another one is under way");
  result_ = {record.step, "", ""};
  record_ = record;
  now_ = now;
  const auto make_folder = [&] {
    make_folders(options_.calls, folder_);
    require_space(folder_, mine_.shares().bytes());  // before many files are counted
    require_space(folder_, save_bytes(record_, mine_.shares().tensors, mine_.planned()));
    aside_ = std::make_unique<UnfinishedFolder>(
        options_.calls, folder_, text(kUnfinished, to_text(StepName{0, record.step})));
  };
  result_.problem = problem_of([&] { group_.run_alone(make_folder); });
  stage_ = result_.problem.empty() ? Stage::Writing : Stage::Done;
  if (stage_ == Stage::Writing)
    group_.write_shares(std::filesystem::absolute(aside_->path()).string(), now);
}

/// Waits until all ranks have written, then commits, in the background unless the save is waited
/// for.
void CheckpointWriter::collect() {
  std::vector<std::string> texts = group_.collect_shares();
  if (now_) {
    group_.run_alone([&] { commit(texts); });
    stage_ = Stage::Done;
    return;
  }
  stage_ = Stage::Committing;
  committed_ = mine_.background()->run([this, texts = std::move(texts)] { commit(texts); });
}

void CheckpointWriter::commit(const std::vector<std::string>& texts) {
  std::vector<WrittenPart> parts;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    RankResult result = parse_rank_result(texts[rank]);
    if (!result.problem.empty() && result_.problem.empty())
      result_.problem =
          texts.size() == 1 ? result.problem : text("rank ", rank, ": ", result.problem);
    parts.push_back(std::move(result.part));
  }
  if (result_.problem.empty()) {
    SaveOptions options = options_;
    options.notices = &result_.notices;
    result_.problem = problem_of([&] {
      result_.path =
          commit_parts(folder_, *aside_, record_, mine_.shares().tensors, parts, options);
    });
    if (!result_.problem.empty()) result_.path.clear();
  }
  aside_.reset();  // a folder that was not renamed goes
}

SaveResult CheckpointWriter::take() {
  if (committed_.valid()) group_.run_alone([&] { committed_.get(); });
  stage_ = Stage::None;
  return std::exchange(result_, {});
}

}  // namespace tessera
