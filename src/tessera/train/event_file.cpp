#include "tessera/train/event_file.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/config/output_folder.h"

namespace tessera {

namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string host_of_events() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

/// A file that nobody has yet: this process may have made one in the same second.
std::unique_ptr<AppendedFile> fresh_file(const std::string& folder, const FileCalls& calls) {
  const std::string name =
      text(in_folder(folder, "events.out.tfevents."), static_cast<std::int64_t>(seconds_now()), ".",
           host_of_events(), ".", static_cast<std::int64_t>(::getpid()));
  for (std::int64_t number = 0;; ++number) {
    auto out = std::make_unique<AppendedFile>(number == 0 ? name : text(name, ".", number), calls,
                                              AppendedFile::Fresh::Yes);
    if (out->is_open()) return out;
  }
}

void add_means(std::vector<ScalarValue>& values, std::string_view group, const NamedMeans& means) {
  for (const auto& [name, mean] : means)
    values.push_back({text(group, name), static_cast<float>(mean)});
}

/// Those of `means` that `others` does not have.
NamedMeans without(NamedMeans means, const NamedMeans& others) {
  std::erase_if(means, [&](const auto& mean) {
    return std::ranges::any_of(others, [&](const auto& one) { return one.first == mean.first; });
  });
  return means;
}

}  // namespace

EventFile::EventFile(const std::string& folder, std::int64_t step, const FileCalls& calls) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem)
    fail(Fault::Resource, "cannot make the folder '", folder,
         "' of tensorboard-dir: ", problem.message(), "; check the path and its permissions");
  file_ = fresh_file(folder, calls);
  const double now = seconds_now();
  file_->write(framed(version_event(now)), framed(restart_event(now, step + 1)));
}

void EventFile::on_step(const StepRecord& r) {
  const auto number = [](double value) { return static_cast<float>(value); };
  std::vector<ScalarValue> values = {{"train/loss", number(r.loss)},
                                     {"train/learning_rate", number(r.lr)},
                                     {"train/grad_norm", number(r.grad_norm)},
                                     {"train/tokens_per_second", number(r.tokens_per_s)},
                                     {"train/step_seconds", number(r.seconds)},
                                     {"train/epoch", static_cast<float>(r.place.epoch)}};
  if (r.loss_scale) values.push_back({"train/loss_scale", number(*r.loss_scale)});
  if (!r.ok) values.push_back({"train/skipped", 1});
  add_means(values, "train/", r.means);
  file_->write(framed(scalars_event(seconds_now(), r.step, values)));
}

void EventFile::on_valid(std::int64_t step, double loss, const NamedMeans& means) {
  std::vector<ScalarValue> values = {{"eval/loss", static_cast<float>(loss)}};
  add_means(values, "eval/", judged_.step == step ? without(means, judged_.scores) : means);
  file_->write(framed(scalars_event(seconds_now(), step, values)));
}

void EventFile::on_eval(const EvalRecord& r) {
  judged_ = r;
  std::vector<ScalarValue> values = {{"eval/epoch", static_cast<float>(r.epoch)}};
  add_means(values, "eval/", r.scores);
  file_->write(framed(scalars_event(seconds_now(), r.step, values)));
}

void EventFile::on_test(const TestRecord& r) {
  if (!r.labelled) return;
  std::vector<ScalarValue> values = {{"test/loss", static_cast<float>(r.measured.loss)}};
  add_means(values, "test/", r.measured.scores);
  file_->write(framed(scalars_event(seconds_now(), r.measured.step, values)));
}

std::string EventFile::finish() {
  const std::string late = file_->sync();
  return late.empty() ? "" : text("TensorBoard's file is incomplete: ", late);
}

std::unique_ptr<EventFile> event_file(const RunConfig& config, std::int64_t step,
                                      const FileCalls& calls) {
  if (config.tensorboard_dir.empty()) return nullptr;
  return std::make_unique<EventFile>(absolute_path(config.tensorboard_dir), step, calls);
}

}  // namespace tessera
