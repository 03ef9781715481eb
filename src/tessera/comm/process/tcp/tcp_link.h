#pragma once
/// Messages between processes over TCP: a Link that needs no library.

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "tessera/comm/process/link.h"
#include "tessera/comm/process/tcp/sockets.h"

namespace tessera::process {

/// One connection to each other rank. A message is a frame and its bytes. What is no longer than
/// kLongestSegment goes at once, and waits in memory of the receiver's where no receive is posted
/// yet. What is larger is offered, and goes when the receiver has a place for it: no rank
/// holds another's large operands. Bytes for which a receive is posted are read straight into their
/// place.
///
/// Nothing moves by itself, but in the calls below; no thread. Operations and the memory of early
/// messages are used again: something is allocated only where more of them are under way than ever
/// before, as when a rank is held up and others run ahead.
class TcpLink final : public Link {
 public:
  static constexpr std::size_t kFrameBytes = 32;

  /// `connections` by rank; that of this rank is not open.
  TcpLink(int rank, std::vector<Socket> connections);
  /// What was sent and is not delivered is, if that does not take long.
  ~TcpLink() override;

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  int machine() override;
  void gather(const void* mine, void* all, std::size_t bytes) override;
  Request send(Channel channel, const void* data, std::size_t bytes, int to, int tag) override;
  Request receive(Channel channel, void* data, std::size_t bytes, int from, int tag) override;
  bool done(Request& request) override;
  void cancel(Request& request) override;
  int losses() const override { return losses_; }
  bool lost(int rank) const override { return peer(rank).lost; }
  int loss_errno(int rank) const override { return peer(rank).broken_by; }
  bool ends_together() const override { return false; }
  void finish() override;
  void end_all(int code) override;

 private:
  struct Frame {
    enum Kind : std::uint16_t {
      Data,   // the bytes follow
      Offer,  // there are so many, too many to send unasked
      Grant,  // a place is there for them
      Large,  // they follow
      Bye     // nothing follows: the sender ends in order
    };
    std::uint64_t bytes = 0;
    std::int32_t tag = 0;
    std::uint32_t sender = 0, receiver = 0;  // operations, of an offer and what comes of it
    Channel channel = Channel::Calls;
    Kind kind = Data;
  };
  static_assert(sizeof(Frame) == kFrameBytes);

  /// A message that this rank sends or receives.
  struct Operation {
    enum State : std::uint8_t { Free, UnderWay, Done };
    State state = Free;
    bool sends = false;
    bool own = false;  // of the link itself: nobody asks whether it is done
    std::uint32_t index = 0;
    Channel channel = Channel::Calls;
    int rank = 0, tag = 0;
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    Frame frame;            // of a send
    std::size_t moved = 0;  // of frame and bytes together, where it sends
    bool queued = false;    // of a send: in the peer's queue
    bool matched = false;   // of a receive: a message comes for it
    int granted = kAnyone;  // of a receive: the rank that has been told to send
    Operation* next = nullptr;
    std::vector<std::byte> copy;  // what a cancelled send has still to give
  };

  /// A message that came before its receive.
  struct Early {
    Frame frame;
    std::vector<std::byte> bytes;
    bool complete = false, large = false;
    Early* next = nullptr;
  };

  /// First in, first out.
  template <typename Item>
  struct Queue {
    Item *first = nullptr, *last = nullptr;
    void add(Item* item) {
      item->next = nullptr;
      (first == nullptr ? first : last->next) = item;
      last = item;
    }
    void remove(Item* item) {
      Item *before = nullptr, *at = first;
      while (at != nullptr && at != item) before = at, at = at->next;
      if (at == nullptr) return;
      (before == nullptr ? first : before->next) = item->next;
      if (last == item) last = before;
    }
  };

  struct Peer {
    Socket socket;
    bool lost = false;        // without a Bye
    int broken_by = 0;        // the errno of it; 0: the other side has closed
    bool bye = false;         // it has said so
    bool watched = false;     // for room to write
    Queue<Operation> out;     // what is to be written
    Queue<Operation> posted;  // receives from this rank for which nothing has come
    Queue<Early> early;
    std::vector<std::byte> buffer;  // of what was read and not looked at yet
    std::size_t begin = 0, end = 0;
    // The message whose bytes come now: for a receive, or an early one, or for nobody.
    bool inside = false;
    Frame frame;
    Operation* receive = nullptr;
    Early* keep = nullptr;
    std::size_t got = 0;
  };

  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  const Peer& peer(int rank) const { return peers_[static_cast<std::size_t>(rank)]; }
  void add_operation();
  Operation& make(bool sends, Channel channel, int rank, int tag, void* data, std::size_t bytes);
  Request request_of(Operation& operation);
  Operation& of(const Request& request) { return operations_[request.handle - 1]; }
  void release(Operation& operation);
  void finished(Operation& operation);

  // ---- Sending: tcp_sending.cpp
  void enqueue(Operation& operation, Frame::Kind kind);
  void send_own(int to, const Frame& frame);
  void flush(int to);
  void watch(int to, bool room);
  void keep_copy(Operation& operation);
  void send_to_self(Operation& operation);
  void lose(int rank, int number);

  // ---- Receiving: tcp_receiving.cpp
  void progress(int timeout_ms = 0);
  void read(int from);
  bool look_at_frames(int from);
  void begin_message(int from);
  void end_message(int from);
  void take_offer(int from, const Frame& frame, Operation& receive);
  void take_early(int from, Early& early, Operation& receive);
  void answer_grant(int from, const Frame& frame);
  Operation* posted_for(int from, const Frame& frame);
  Early& new_early(const Frame& frame);
  void add_early(bool large);
  void drop_early(int from, Early& early);
  std::byte* place_of(Peer& p);

  const int rank_;
  Socket events_;  // of epoll
  std::vector<Peer> peers_;
  Queue<Operation> anyone_;           // receives from whoever sends
  std::deque<Operation> operations_;  // their places stay
  std::vector<std::uint32_t> free_operations_;
  std::deque<Early> earlies_;
  std::array<std::vector<Early*>, 2> free_earlies_;  // small, large
  std::vector<std::byte> nowhere_;                   // where bytes go that nobody wants any more
  int losses_ = 0;
};

}  // namespace tessera::process
