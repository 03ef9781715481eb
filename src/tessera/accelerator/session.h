#pragma once
/// The ranks of this process that run one plan.

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tessera/accelerator/loaded_programs.h"
#include "tessera/comm/communicator.h"
#include "tessera/pjrt/buffer.h"
#include "tessera/tensor/host_tensor.h"

namespace tessera {

/// By name: of states their path.
using Buffers = std::map<std::string, pjrt::Buffer, std::less<>>;

/// What a rank has on its device.
struct RankBuffers {
  Buffers states, batch;
  std::map<std::string, HostTensor, std::less<>> metrics;  // on the host, as of the last run
};

/// Of a stage: each micro-batch's number, on the devices of its ranks.
using MicrobatchNumbers = std::map<std::int64_t, std::vector<pjrt::Buffer>>;

/// The programs of a plan, and what all ranks here have on their devices. Every rank holds the
/// session, and so does a run while it lasts: a rank that fails takes nothing away from under it.
class Session : public std::enable_shared_from_this<Session> {
 public:
  /// `plans`: of all ranks here. Errors: as of LoadedPrograms::compile.
  Session(std::shared_ptr<LoadedPrograms> devices, std::vector<std::shared_ptr<const Plan>> plans,
          From from);

  /// In the order of the plan.
  const LoadedProgram& program(std::size_t number) const { return programs_[number]; }
  const LoadedPrograms& devices() const { return *devices_; }

  /// What that rank has, which is its own between runs. Errors: Fault::Peer: a run that was given up
  /// is still under way.
  RankBuffers& buffers(int rank);

  /// Does work for a program; where memory runs out, the error says what it wants and what there is.
  void naming_memory(std::size_t program, const std::function<void()>& work) const;

  /// Runs a program once on all devices. All ranks call it together; one of each process starts it. Reads
  /// and writes their states, reads their batch, writes their metrics.
  /// Errors: of the plugin: then some states may be lost, and no further run begins.
  void run(std::size_t program, int rank, Communicator* world);

  /// A call for a rank has failed: no further run begins, and what is on the devices stays
  /// (LoadedPrograms::give_up).
  void give_up();

 private:
  void begin_run();
  void end_run();
  void close();
  void start(std::size_t program, int rank, std::int64_t ended, Communicator* world);

  std::shared_ptr<LoadedPrograms> devices_;
  std::vector<std::shared_ptr<const Plan>> plans_;
  std::vector<LoadedProgram> programs_;
  std::vector<RankBuffers> ranks_;
  std::vector<MicrobatchNumbers> numbers_;  // by stage
  std::mutex mutex_;
  std::condition_variable changed_;
  int running_ = 0;      // runs that the devices are at: one, but for those that were given up
  bool closed_ = false;  // a rank has failed: no run begins
};

}  // namespace tessera
