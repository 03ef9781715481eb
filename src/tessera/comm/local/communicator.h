#pragma once
/// One rank's end of a group of threads.

#include <memory>

#include "tessera/comm/communicator.h"
#include "tessera/comm/local/collectives.h"
#include "tessera/comm/local/waiting.h"
#include "tessera/comm/local/world.h"

namespace tessera::local {

/// Start shows what a call is and where its memory lies. Whoever comes last does what is to be
/// done.
class LocalCommunicator final : public Communicator {
 public:
  LocalCommunicator(World& world, LocalGroup& shared, int index);

  std::unique_ptr<Communicator> join(const Group& group) override;
  void set_step(std::int64_t step) override { waiting_.place().set_step(step); }
  bool peer_failed() override { return world_.stopped(); }
  void alive() override { waiting_.place().alive(); }
  int cores_per_rank() const override { return world_.cores_per_rank; }
  int cores_of_host() const override { return world_.cores_of_host; }
  std::shared_ptr<void> in_common(const std::string& key,
                                  const std::function<std::shared_ptr<void>()>& make) override {
    return world_.in_common(key, make);
  }

 private:
  void start_collective(Ticket& ticket, const void* in) override;
  void wait_collective(Ticket& ticket) override;
  void drop_collective(Ticket& ticket) noexcept override;

  // ---- sends.cpp
  void start_send(Ticket& ticket, const void* in) override;
  void start_recv(Ticket& ticket) override;
  void wait_send(Ticket& ticket) override;
  void wait_recv(Ticket& ticket) override;
  void drop_send(Ticket& ticket) noexcept override;
  void drop_recv(Ticket& ticket) noexcept override;
  Channel& channel_of(const Collective& c);
  void begin(const Ticket& ticket) const;
  template <typename Ready>
  void await(const Ticket& ticket, const Ready& ready) const;
  void move(Message& message, const Ticket& ticket) const;
  void withdraw(Message& message, Number number) const noexcept;

  World& world_;
  LocalGroup& shared_;
  const Waiting waiting_;
  Collectives& collectives_;
};

}  // namespace tessera::local
