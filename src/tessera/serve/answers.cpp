#include "tessera/serve/answers.h"

#include <algorithm>
#include <utility>

#include "tessera/base/utf8.h"
#include "tessera/models/stop_texts.h"

namespace tessera {

namespace {

constexpr std::chrono::milliseconds kBetweenStops{50};
constexpr const char* kEnding = "the server is ending";

/// Whole characters of a text that comes in pieces of bytes.
class WholeCharacters {
 public:
  std::string add(const std::string& piece) {
    pending_ += piece;
    std::size_t kept = 0;  // bytes at the end that begin a character
    for (std::size_t n = 1; n <= std::min<std::size_t>(3, pending_.size()); ++n) {
      const auto byte = static_cast<unsigned char>(pending_[pending_.size() - n]);
      if (byte < 0x80) break;
      if (byte < 0xC0) continue;
      const std::size_t size = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
      kept = size > n ? n : 0;
      break;
    }
    std::string out = pending_.substr(0, pending_.size() - kept);
    pending_.erase(0, out.size());
    return replaced_utf8(out);
  }
  std::string rest() { return replaced_utf8(std::exchange(pending_, {})); }

 private:
  std::string pending_;
};

void write_answer(TextModel& model, const Vocabulary& vocabulary, WaitedAnswer& answer,
                  const std::atomic<bool>& stop) {
  const AnswerRequest& request = answer.request();
  TextStream written(vocabulary, request.beginning.prompt);
  StopTexts stops(request.stops);
  WholeCharacters whole;
  GenerateOptions options = request.options;
  bool ended = false;
  options.on_token = [&](std::size_t, std::int32_t id) {
    if (id != request.end) answer.add(whole.add(stops.add(written.add(id))));
  };
  options.ends = [&](std::size_t, std::int32_t id) {
    ended = id == request.end || stops.stopped();
    return ended || answer.cancelled() || stop;
  };
  const Tokens tokens = generate(model, vocabulary, {&request.beginning, 1}, options)[0];
  std::string last = stops.add(written.rest());
  if (!stops.stopped()) last += stops.rest();
  answer.add(whole.add(last) + whole.rest());
  if (stop && !ended) return answer.finish({.status = 503, .message = kEnding});
  const std::int64_t count =
      std::ssize(tokens) - (!tokens.empty() && tokens.back() == request.end ? 1 : 0);
  const bool cut = !ended && !stops.stopped() && std::ssize(tokens) >= options.tokens;
  answer.finish({.reason = cut ? "length" : "stop", .tokens = count});
}

}  // namespace

std::string WaitedAnswer::take(std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, most, [&] { return !text_.empty() || end_; });
  return std::exchange(text_, {});
}

std::optional<AnswerEnd> WaitedAnswer::end() {
  const std::lock_guard lock(mutex_);
  return text_.empty() ? end_ : std::nullopt;
}

void WaitedAnswer::add(const std::string& text) {
  if (text.empty()) return;
  const std::lock_guard lock(mutex_);
  text_ += text;
  changed_.notify_all();
}

void WaitedAnswer::finish(AnswerEnd end) {
  const std::lock_guard lock(mutex_);
  end_ = std::move(end);
  changed_.notify_all();
}

bool AnswerQueue::push(std::shared_ptr<WaitedAnswer> answer) {
  const std::lock_guard lock(mutex_);
  if (closed_) {
    answer->finish({.status = 503, .message = kEnding});
    return true;
  }
  std::erase_if(waiting_, [](const auto& each) { return each->cancelled(); });
  if (std::ssize(waiting_) >= most_ + (writes_ ? 0 : 1)) return false;
  waiting_.push_back(std::move(answer));
  changed_.notify_all();
  return true;
}

std::shared_ptr<WaitedAnswer> AnswerQueue::pop(const std::atomic<bool>& stop) {
  std::unique_lock lock(mutex_);
  writes_ = false;
  while (!stop) {
    std::erase_if(waiting_, [](const auto& each) { return each->cancelled(); });
    if (!waiting_.empty()) {
      std::shared_ptr<WaitedAnswer> out = std::move(waiting_.front());
      waiting_.pop_front();
      writes_ = true;
      return out;
    }
    changed_.wait_for(lock, kBetweenStops);
  }
  return nullptr;
}

void AnswerQueue::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (const auto& answer : waiting_) answer->finish({.status = 503, .message = kEnding});
  waiting_.clear();
}

void write_answers(TextModel& model, RankGroup& group, const Vocabulary& vocabulary,
                   AnswerQueue& queue, const std::atomic<bool>& stop) {
  for (;;) {
    std::shared_ptr<WaitedAnswer> answer;
    group.run_alone([&] { answer = queue.pop(stop); });
    if (answer == nullptr) break;
    try {
      write_answer(model, vocabulary, *answer, stop);
    } catch (const std::exception& failure) {
      answer->finish({.status = 500, .message = failure.what()});
      const auto* const error = dynamic_cast<const Error*>(&failure);
      if (error != nullptr && error->fault() == Fault::Numerics) continue;
      queue.close();
      throw;
    }
  }
  queue.close();
}

}  // namespace tessera
