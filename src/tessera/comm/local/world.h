#pragma once
/// What the ranks of one process share: where each is, who failed, which groups there are.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/comm/backend/call.h"
#include "tessera/comm/backend/patience.h"
#include "tessera/comm/collective.h"
#include "tessera/comm/communicator.h"
#include "tessera/comm/group.h"

namespace tessera::local {

using backend::Clock;
using backend::Number;
using backend::Patience;
using backend::Seen;
constexpr std::size_t kCacheLine = 64;

/// What one rank does, for the messages of others. Relaxed atomics: a message may mix two calls of
/// a rank that goes on, but never reads what is being written.
class alignas(kCacheLine) Place {
 public:
  void enter(const Group& group, const Collective& c, Number number);
  /// The same for the wait of a collective, which most often was the last call that began.
  void enter_again(const Group& group, const Collective& c, Number number);
  void leave() { inside_.store(false, std::memory_order_relaxed); }
  void set_step(std::int64_t step) { step_.store(step, std::memory_order_relaxed); }
  /// A sign of life: only this rank's.
  void alive() { signs_.store(signs() + 1, std::memory_order_relaxed); }
  std::uint64_t signs() const { return signs_.load(std::memory_order_relaxed); }
  /// The rank's body has returned or thrown.
  void end() { ended_.store(true, std::memory_order_release); }
  bool ended() const { return ended_.load(std::memory_order_acquire); }
  Seen view() const;

 private:
  static constexpr std::size_t kWords = 8;  // names are cut to 64 bytes
  std::atomic<std::int64_t> step_{-1};
  std::atomic<const Group*> group_{nullptr};
  std::atomic<CollectiveKind> kind_{};
  std::atomic<Number> number_{0};
  std::atomic<bool> inside_{false}, ended_{false};
  std::atomic<std::uint64_t> signs_{0};
  std::array<std::atomic<std::uint64_t>, kWords> name_{};
};

class Collectives;
class World;

/// What one member shows the others of its group for one call. Its first cache line is all that
/// they read of most calls: a line that moves between cores is what a small call costs.
struct alignas(kCacheLine) Post {
  static constexpr std::int64_t kInline = 96;

  std::atomic<Number> arrived{0};  // the call; written last
  std::uint64_t signature;         // of all that must agree
  const void* in;
  void* out;
  std::array<std::byte, kInline> small;  // a small `in`, copied

  // What the signature stands for, read where signatures differ.
  alignas(kCacheLine) CollectiveKind kind;
  DType dtype;
  Monoid monoid;
  int gather, scatter, peer;
  Shape whole;

  void fill(const Collective& c, const void* from, void* to);
  Collective collective() const { return {kind, dtype, monoid, gather, scatter, peer, whole, ""}; }
};

/// What the others of a group see of one member.
struct Member {
  /// By number: the post of call k + kInFlight is written when all are done with k.
  std::array<Post, Communicator::kInFlight> posts;
  alignas(kCacheLine) std::atomic<Number> done{0};  // the last call of which it has done its share
  /// It touches the memory of others. Read only where one withdraws, so that setting it is cheap.
  alignas(kCacheLine) std::atomic<bool> working{false};

  bool has_arrived(Number number) const {
    return posts[number % posts.size()].arrived.load(std::memory_order_acquire) >= number;
  }
};

/// A message from one member to another. `ends` says which of the two have come, and decides who of
/// them moves it (sends.cpp).
struct Message {
  enum : unsigned {
    kSent = 1,       // the send has been started
    kPosted = 2,     // the receive has been started
    kAwaited = 4,    // the receiver came first and waits: it will move the message itself
    kMoving = 8,     // one of them touches the memory of both
    kWithdrawn = 16  // one of them has failed: it may not be touched any more
  };
  struct Operand {
    DType dtype{};
    Shape whole;
    friend bool operator==(const Operand&, const Operand&) = default;
  };

  std::atomic<unsigned> ends{0};
  std::atomic<Number> moved{0};  // the last message in this place that was
  Operand sent, received;
  const void* in = nullptr;
  void* out = nullptr;
};

/// Messages from one member to another: at most so many are sent and not moved, or their receives
/// started and not ended.
struct alignas(kCacheLine) Channel {
  std::vector<Message> messages;                          // by number
  Number sends = 0;                                       // started: only the sender's
  alignas(kCacheLine) Number receives = 0, received = 0;  // started, ended: only the receiver's

  Message& message(Number number) { return messages[number % messages.size()]; }
};

struct LocalGroup {
  LocalGroup(World& world, Group g);
  ~LocalGroup();
  Channel& channel(int from, int to) {
    return channels[static_cast<std::size_t>(from * group.size() + to)];
  }
  Group group;
  std::vector<Member> members;
  std::vector<Channel> channels;
  std::atomic<int> withdrawn{-1};  // the first member that gave up a collective under way
  std::vector<std::unique_ptr<Collectives>> collectives;  // by member; only that member's
};

/// The groups on which one rank has collectives whose shares it has not done; only that rank's.
struct alignas(kCacheLine) Open {
  Collectives* first = nullptr;
};

class World {
 public:
  World(int n, std::chrono::milliseconds deadline);

  int size() const { return static_cast<int>(places.size()); }
  LocalGroup& group(const Group& group);
  /// As Communicator::in_common.
  std::shared_ptr<void> in_common(const std::string& key,
                                  const std::function<std::shared_ptr<void>()>& make);
  /// Signs of life of all ranks.
  std::uint64_t signs() const;

  /// The first failure counts; `why` is one line about it.
  void stop(int rank, std::exception_ptr cause, std::string why);
  bool stopped() const { return stopped_.load(std::memory_order_acquire); }
  /// After the stop.
  const std::string& why() const { return why_; }
  std::exception_ptr cause() const { return cause_; }

  const std::chrono::milliseconds deadline;
  const int cores_of_host, cores_per_rank;
  const backend::Pace pace;
  std::vector<Place> places;  // by rank
  std::vector<Open> open;     // by rank

 private:
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<LocalGroup>> groups_;
  std::map<std::string, std::weak_ptr<void>> common_;
  std::exception_ptr cause_;
  std::string why_;
  std::atomic<bool> stopped_{false};
};

}  // namespace tessera::local
