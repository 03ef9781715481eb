#pragma once
/// Texts that several clients wait for, and one model writes, one after the other.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tessera/train/generate.h"
#include "tessera/train/rank_group.h"

namespace tessera {

struct AnswerRequest {
  Beginning beginning;
  GenerateOptions options;
  std::vector<std::string> stops;
  std::optional<std::int32_t> end;  // a token that ends it, beside the task's
};

/// How a text ended.
struct AnswerEnd {
  const char* reason = nullptr;  // "stop", "length"; nullptr: it failed
  std::int64_t tokens = 0;       // that were written
  int status = 200;              // of a failure
  std::string message = {};
};

/// A text on its way from the thread that writes to the one that waits.
class WaitedAnswer {
 public:
  explicit WaitedAnswer(AnswerRequest request) : request_(std::move(request)) {}
  const AnswerRequest& request() const { return request_; }

  /// What has been written since the last call; waits for it, or for the end, at most so long.
  std::string take(std::chrono::milliseconds most);
  /// None: it has not ended, or take() has more.
  std::optional<AnswerEnd> end();
  /// Nobody waits any more.
  void cancel() { cancelled_ = true; }
  bool cancelled() const { return cancelled_; }

  void add(const std::string& text);
  void finish(AnswerEnd end);

 private:
  AnswerRequest request_;
  std::atomic<bool> cancelled_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
  std::optional<AnswerEnd> end_;
};

class AnswerQueue {
 public:
  /// `most`: answers that wait while one is written.
  explicit AnswerQueue(std::int64_t most) : most_(most) {}
  /// False: there are as many as may wait.
  bool push(std::shared_ptr<WaitedAnswer> answer);
  /// The next to be written; nullptr: `stop` is set. Cancelled ones are passed over.
  std::shared_ptr<WaitedAnswer> pop(const std::atomic<bool>& stop);
  /// All that wait, and all that come later, fail: the server ends.
  void close();

 private:
  std::int64_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<WaitedAnswer>> waiting_;
  bool writes_ = false, closed_ = false;
};

/// Writes what `queue` has until `stop` is set, then closes it. On the leader of a group. Logits
/// that are not finite fail one answer; any other error fails all, and is thrown.
void write_answers(TextModel& model, RankGroup& group, const Vocabulary& vocabulary,
                   AnswerQueue& queue, const std::atomic<bool>& stop);

}  // namespace tessera
