#pragma once
/// One rank's end of a group of processes.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tessera/comm/backend/parts.h"
#include "tessera/comm/communicator.h"
#include "tessera/comm/process/slot.h"
#include "tessera/comm/process/world.h"

namespace tessera::process {

/// Every member writes to every other what it calls, in start: a call of which all have that letter
/// is agreed, and only then memory is touched. An operand of at most Letter::kInline bytes comes
/// with the letter; larger ones follow in wait, in segments, several under way. Calls are ended in
/// the order in which this rank started them, whatever group they are of: that order all ranks
/// share, so each finds the others at the same one.
///
/// A send is a header and the data, both under way from start. Receives take in headers in whatever
/// call of comm the rank is, and then the data, straight to its place.
class ProcessCommunicator final : public Communicator {
 public:
  ProcessCommunicator(World& world, const Group& group, int index);

  std::unique_ptr<Communicator> join(const Group& group) override;
  void set_step(std::int64_t step) override { world_.set_step(step); }
  bool peer_failed() override;
  void alive() override;
  int cores_per_rank() const override { return world_.cores_per_rank(); }
  int cores_of_host() const override { return world_.cores_of_host(); }

 private:
  // ---- collectives.cpp
  void start_collective(Ticket& ticket, const void* in) override;
  void wait_collective(Ticket& ticket) override;
  void drop_collective(Ticket& ticket) noexcept override;
  void require_kept(const Collective& c, Number number);
  void post_letters(Underway& call);
  /// Ends calls under way, up to this one.
  void end_through(const Underway& last);
  void end(Underway& call);
  void end_work(Underway& call);
  void give_up(Underway& call) noexcept;
  /// Ends those whose letters are all there, while this rank waits for something else. True where
  /// there were any.
  bool advance();
  bool letters_are_there(Underway& call);
  void note_arrivals(Underway& call);
  void require_agreement(const Underway& call);
  const Header& header_of(const Underway& call, int member) const;

  // ---- communicator.cpp: waiting, and failures.
  /// Waits for `member` until ready(). Whatever a rank waits for, it ends the collectives that all
  /// have started, and its messages move on.
  template <typename Ready>
  void await(const Collective& c, Number number, int member, const Ready& ready) {
    Patience patience(world_.pace());
    while (!ready()) {
      if (advance() || move_messages()) {
        patience = Patience(world_.pace());  // that took time of its own
        continue;
      }
      patience.wait();
      if (patience.waits_long()) await_longer(patience, c, number, member);
    }
  }
  /// Waits until all of `requests` are done; they are of `members`, one each.
  void await_all(const Collective& c, Number number, std::span<Request> requests,
                 std::span<const int> members);
  void await_longer(Patience& patience, const Collective& c, Number number, int member);
  /// Names a call for others to see, and looks whether all goes well.
  void begin(const Collective& c, Number number);
  /// After a failure: see World.
  void quiesce(std::span<Request> requests, std::span<const int> members) noexcept;
  void stop(const std::string& why) { world_.stop(Fault::Peer, why, nullptr); }
  [[noreturn]] void fail_as_peer(const Collective& c, Number number) const;
  std::string here(const Collective& c, Number number) const;
  std::string missing(const Collective& c, Number number, int late);

  // ---- data.cpp: large operands.
  /// One direction between this rank and one other: a part, in segments.
  struct Flow {
    backend::Part part;
    bool straight;  // its elements lie in one piece on our side
  };
  static Flow flow(const backend::Part& part, backend::Side backend::Part::*side);
  void move_data(const Collective& c, const void* in, void* out);
  void move_rows(const Collective& c, const void* in, void* out, const std::int32_t* ids);
  void all_reduce(const Collective& c, const void* in, void* out);
  void broadcast(const Collective& c, const void* in, void* out);
  void all_gather(const Collective& c, const void* in, void* out);
  void all_to_all(const Collective& c, const void* in, void* out);
  void reduce_scatter(const Collective& c, const void* in, void* out);
  template <typename Consume>
  void stream(const Collective& c, const void* in, void* out, bool staged, const Consume& consume);
  void unpack(const Collective& c, std::int64_t segment, void* out);
  template <typename First, typename Between, typename Second>
  void two_phases(const Collective& c, std::int64_t segments, const First& first,
                  const Between& between, const Second& second);
  std::int64_t segment_elements(const Collective& c) const;
  std::byte* staged_out(const Collective& c, std::int64_t segment, int member);
  std::byte* staged_in(const Collective& c, std::int64_t segment, int member);
  void send(int slot, const void* data, std::int64_t bytes, int member, int tag);
  void receive(int slot, void* data, std::int64_t bytes, int member, int tag);
  void await_slot(const Collective& c, int slot);

  // ---- sends.cpp
  void start_send(Ticket& ticket, const void* in) override;
  void start_recv(Ticket& ticket) override;
  void wait_send(Ticket& ticket) override;
  void wait_recv(Ticket& ticket) override;
  void drop_send(Ticket& ticket) noexcept override;
  void drop_recv(Ticket& ticket) noexcept override;
  /// Moves on messages under way, of all groups. True where anything has come or left.
  bool move_messages();
  bool take_headers(int from);
  void take(Posted& receive, const Header& header);
  CallsUnderWay::Mail& mail_from(int rank) {
    return world_.under_way().mail[static_cast<std::size_t>(rank)];
  }
  Calls::Mailbox& mailbox_with(int member) { return calls_.with[static_cast<std::size_t>(member)]; }

  int world_rank(int member) const { return group().ranks[static_cast<std::size_t>(member)]; }

  World& world_;
  const std::uint64_t id_;
  Calls& calls_;
  Number number_ = 0;          // of the large call that is being ended
  std::array<Slot, 4> slots_;  // two segments in each of two phases
  std::vector<const void*> ins_;
  std::vector<std::int64_t> taken_;  // rows of each member
  std::vector<Flow> outgoing_, incoming_;
  Clock::time_point saw_end_;  // of the rank that is awaited
};

}  // namespace tessera::process
