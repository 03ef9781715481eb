#include "tessera/train/best_checkpoint.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include "tessera/base/text.h"
#include "tessera/checkpoint/checkpoint_folder.h"

namespace tessera {

namespace {

namespace fs = std::filesystem;

/// The name of the checkpoint that the link names; empty where there is none.
std::string linked_name(const std::string& folder) {
  std::error_code missing;
  const fs::path link = fs::path(folder) / kBestLink;
  const std::string name = fs::read_symlink(link, missing).string();
  return parse_step_name(name) && fs::exists(link, missing) ? name : "";
}

struct LeftBehind {
  StepName after, last;
};
std::vector<LeftBehind> parse_left(const std::string& lines) {
  std::vector<LeftBehind> out;
  std::istringstream words(lines);
  for (std::string after, last; words >> after >> last;) {
    const auto first = parse_step_name(after), end = parse_step_name(last);
    if (first && end) out.push_back({*first, *end});
  }
  return out;
}

/// The committed checkpoints that a run made on its way to the one named `from`, newest first. What
/// it left behind is not recorded in old files: their steps tell most of it.
std::vector<StepName> way_to(const std::string& from, const std::string& left,
                             const std::string& folder) {
  std::vector<StepName> out;
  const std::optional<StepName> end = parse_step_name(from);
  if (!end) return out;
  const std::vector<LeftBehind> all_left = parse_left(left);
  const auto is_left = [&](const StepName& name) {
    return std::any_of(all_left.begin(), all_left.end(),
                       [&](const LeftBehind& l) { return l.after < name && name <= l.last; });
  };
  const std::vector<StepName> committed = scan_checkpoints(folder).committed;
  for (auto name = committed.rbegin(); name != committed.rend(); ++name) {
    const bool before = out.empty() ? *name <= *end : name->step < out.back().step;
    if (before && !is_left(*name)) out.push_back(*name);
  }
  return out;
}

}  // namespace

std::string left_behind(const Checkpoint& from) {
  const auto& texts = from.record().texts;
  const auto before = texts.find(kRecordedLeft);
  std::string out = before == texts.end() ? "" : before->second;
  const fs::path path = from.path();
  const std::optional<StepName> name = parse_step_name(path.filename().string());
  const std::vector<StepName> all = scan_checkpoints(path.parent_path().string()).committed;
  if (name && !all.empty() && *name < all.back())
    out += text(to_text(*name), " ", to_text(all.back()), "\n");
  return out;
}

BestCheckpoint::BestCheckpoint(std::string folder, const KeptMetrics& metrics,
                               const std::string& from, const std::string& left,
                               std::vector<std::string>& notices)
    : folder_(std::move(folder)) {
  for (const StepName& name : way_to(from, left, folder_)) {
    const auto loss = metrics.valid_losses.find(name.step);
    if (loss == metrics.valid_losses.end() || (loss_ && loss->second > *loss_)) continue;
    name_ = to_text(name);  // of equal ones the oldest, which was the best first
    loss_ = loss->second;
  }
  const std::string linked = linked_name(folder_);
  if (!loss_) name_ = linked;
  if (name_ == linked) return;
  const std::string problem = link();
  notices.push_back(!problem.empty()
                        ? problem
                        : text("the best checkpoint is ", name_, ", with the validation loss ",
                               json_number(*loss_), ": the link '",
                               (fs::path(folder_) / kBestLink).string(), "' now names it",
                               linked.empty() ? "" : text(" instead of ", linked)));
}

void BestCheckpoint::validated(std::int64_t step, double loss) {
  if (!std::isfinite(loss) || (loss_ && loss >= *loss_)) return;
  found_loss_ = loss;
  found_ = step;
}

void BestCheckpoint::not_saved(std::int64_t step) {
  if (wants(step)) found_ = -1;
}

std::string BestCheckpoint::saved(std::int64_t step, const std::string& path) {
  if (!wants(step)) return "";
  name_ = fs::path(path).filename().string();
  loss_ = found_loss_;
  found_ = -1;
  return link();
}

/// A link under another name is moved over the old one: there is one at any moment.
std::string BestCheckpoint::link() const {
  const fs::path link = fs::path(folder_) / kBestLink, fresh = fs::path(folder_) / ".best";
  std::error_code failure;
  fs::remove(fresh, failure);
  fs::create_directory_symlink(name_, fresh, failure);
  if (!failure) fs::rename(fresh, link, failure);
  return failure ? text("cannot make the link '", link.string(), "' to the best checkpoint ", name_,
                        ": ", failure.message(), "; the checkpoint is kept")
                 : "";
}

}  // namespace tessera
