#pragma once
/// What a user script begins with: RapidformerEngine engine(argc, argv).

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/apps/training.h"
#include "tessera/launch/console.h"
#include "tessera/user_code/own_loop.h"

namespace tessera {

/// Words of a user script for the screen; of several processes the first one's alone.
class Logger {
 public:
  explicit Logger(std::ostream* to = nullptr) : to_(to) {}
  void info(std::string_view line) const;

 private:
  std::ostream* to_;  // nullptr: silent
};

/// Stopwatches by name, as Megatron-LM's: timers("data").start(), .stop(), timers.text().
class Timers {
 public:
  class Timer {
   public:
    void start() { begin_ = Clock::now(); }
    void stop() { seconds_ += std::chrono::duration<double>(Clock::now() - begin_).count(); }
    double seconds() const { return seconds_; }  // between all starts and stops

   private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point begin_ = {};
    double seconds_ = 0;
  };
  Timer& operator()(const std::string& name) { return timers_[name]; }
  /// "time (ms) | data: 12.3 | loop: 4.5"
  std::string text() const;

 private:
  std::map<std::string, Timer> timers_;
};

/// The flags, and what they run on. One a process: it also does what the command does before
/// anything else, so that pipes that nobody reads end no run.
class RapidformerEngine {
 public:
  /// Flags that are wrong are told by what is called next, all of them. `families`: those of the
  /// program's own, which --family can name.
  RapidformerEngine(int count, char** values, const OwnFamilies& families = {});

  /// Does the program's work; the exit code of docs/reference/errors.md, as main() returns it: an
  /// error that `work` throws is printed as the command does, and --help is answered in its place.
  /// A template's train() is such work already.
  /// An exception of the work is a fault of the program.
  int run(const std::function<int()>& work);

  const RunConfig& args() const { return asked_.config; }
  const AskedTraining& asked() const { return asked_; }
  const Logger& logger() const { return logger_; }
  Timers& timers() { return timers_; }
  Console& console() { return console_; }

  // For a loop of one's own, in place of a template. All devices are threads of this process.
  /// Compiles what is trained: data, model, optimizer and schedule, and the loss of a batch, as the
  /// functions of a Finetuner return them. Errors: as of OwnLoop.
  void compose(const Datasets& data, const Provided& provided,
               std::function<ModelOutput(const Batch& batch, const Model& model)> forward_step);
  /// What args() became: sizes, vocabulary and steps are known. From here on, functions need
  /// compose().
  const RunConfig& config() const;
  /// The steps that begin in this epoch, counted from 1; samples are in a new order in each.
  std::vector<SampleBatch> train_batches(std::int64_t epoch) const;
  /// One step on all devices: loss, gradients and update. That is backward(), optimizer.step(),
  /// lr_scheduler.step() and zero_grad() of a loop in PyTorch, which are one compiled program here.
  StepRecord backward(const SampleBatch& batch);
  /// The learning rate of later steps; kScheduledRate: the schedule's again.
  void set_lr(double lr);
  /// What the model predicts now of all held-out samples, gathered from all devices, and the loss.
  EvalPrediction gather();
  /// The model as Hugging Face's transformers loads it, and its tokenizer.
  void save_pretrained(const std::string& folder);

 private:
  friend class TrainingTemplate;
  /// The same, where exceptions of others are faults of the library.
  int run_as_is(const std::function<int()>& work);
  OwnLoop& loop() const;

  Console console_;
  AskedTraining asked_;
  Logger logger_;
  Timers timers_;
  std::unique_ptr<OwnLoop> loop_;
};

}  // namespace tessera
