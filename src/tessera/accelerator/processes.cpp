#include "tessera/accelerator/processes.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <random>

#include "tessera/accelerator/board.h"
#include "tessera/accelerator/plugin_work.h"
#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/comm/share_text.h"

namespace tessera {

namespace {

/// A number that no other process has.
std::string process_number() {
  static const std::string number = [] {
    std::random_device random;
    return text(getpid(), ".", random(), ".", random());
  }();
  return number;
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return text(name.data(), ".", boot);
}

}  // namespace

Processes one_process(int ranks) { return {{{0, ranks, 0}}, 0}; }

int first_gpu(const ProcessRanks& here, int visible) {
  return visible == here.count ? 0 : here.first_on_host;
}

ProcessName this_process() { return {host_name(), process_number()}; }

Processes processes_of(Communicator& world, const ProcessName& mine) {
  const std::string separator(1, '\0');
  const std::vector<std::string> names =
      gather_texts(world, mine.host + separator + mine.process, "where ranks are");
  Processes out;
  std::map<std::string, int> on_host;
  for (int rank = 0; rank < world.size(); ++rank) {
    const std::string& name = names[static_cast<std::size_t>(rank)];
    int& before = on_host[name.substr(0, name.find('\0'))];
    if (rank == 0 || name != names[static_cast<std::size_t>(rank) - 1]) {
      const auto earlier = std::find(names.begin(), names.begin() + rank, name);
      require(earlier == names.begin() + rank, "rank ", rank, " is in the process of rank ",
              earlier - names.begin(),
              ", and not those between; number the ranks of a process one "
              "behind the other");
      out.all.push_back({rank, 0, before});
    }
    ++out.all.back().count;
    ++before;
    if (rank == world.rank()) out.own = static_cast<int>(out.all.size()) - 1;
  }
  return out;
}

void work_together(PluginThreads& threads, std::function<void()> work,
                   std::function<void()> afterwards, const Patience& patience,
                   std::shared_ptr<Board> board, Communicator* world) {
  std::optional<PluginWork> mine;
  if (work) mine.emplace(threads, std::move(work), std::move(afterwards), patience);
  if (board == nullptr) {
    if (mine) mine->wait(world);
    return;
  }
  try {
    for (bool all_over = false; !all_over;) {
      const bool over = !mine || mine->over();
      const std::vector<std::string> news = gather_texts(
          *world, (over ? "." : ",") + board->take_news(), "what plugins tell each other");
      all_over = true;
      for (const std::string& text : news) {
        board->add(std::string_view(text).substr(1));
        all_over = all_over && text[0] == '.';
      }
    }
  } catch (const Error& error) {
    board->close(error.what());
    throw;
  } catch (...) {
    board->close("a rank of this process has failed; look at its error");
    throw;
  }
}

}  // namespace tessera
