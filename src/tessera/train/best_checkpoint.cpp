#include "tessera/train/best_checkpoint.h"

#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include "tessera/base/text.h"
#include "tessera/train/checkpoint_folder.h"

namespace tessera {

namespace fs = std::filesystem;

BestCheckpoint::BestCheckpoint(std::string folder, const KeptMetrics& metrics)
    : folder_(std::move(folder)) {
  std::error_code missing;
  const fs::path link = fs::path(folder_) / kBestLink;
  const std::string name = fs::read_symlink(link, missing).string();
  const std::optional<StepName> step = parse_step_name(name);
  if (!step || step->step != metrics.best_step || !fs::exists(link, missing)) return;
  name_ = name;
  loss_ = metrics.best_loss;
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
  // A link under another name is moved over the old one: there is one at any moment.
  const fs::path link = fs::path(folder_) / kBestLink, fresh = fs::path(folder_) / ".best";
  std::error_code failure;
  fs::remove(fresh, failure);
  fs::create_directory_symlink(name_, fresh, failure);
  if (!failure) fs::rename(fresh, link, failure);
  return failure ? text("cannot make the link '", link.string(), "' to the best checkpoint ", name_,
                        ": ", failure.message(), "; it is kept all the same")
                 : "";
}

}  // namespace tessera
