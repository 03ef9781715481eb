/// Another user of the machine, who would join runs, crash or end them: finds ports at which ranks
/// listen, as everybody can (/proc/net/tcp), and sends them what ranks send, without the secret.
///
/// Run:  impostor SECONDS LETTERS           as an unprivileged user; impostors_test.sh does
/// Prints how many letters it sent, and to how many it was welcomed as a rank.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tessera/comm/process/letter.h"
#include "tessera/comm/process/tcp/introduce.h"
#include "tessera/comm/process/tcp/meeting_leader.h"
#include "tessera/comm/process/tcp/sockets.h"

namespace {

using namespace tessera::process;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

/// Ports of the loopback at which somebody listens.
std::vector<int> ports() {
  std::set<int> out;
  std::ifstream file("/proc/net/tcp");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string slot, local, remote, state;
    words >> slot >> local >> remote >> state;
    constexpr const char* kListens = "0A";
    if (state == kListens && local.starts_with("0100007F:"))
      out.insert(std::stoi(local.substr(local.find(':') + 1), nullptr, 16));
  }
  return {out.begin(), out.end()};
}

/// Bytes of what ranks write, some of them damaged.
std::string hostile(std::mt19937& random) {
  std::string out;
  const auto add = [&](const auto& value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  Rendezvous where;
  where.rank = static_cast<int>(random() % 6) - 2, where.size = 2 + static_cast<int>(random() % 3);
  Opening opening = {greeting_of(where, 0, 4711), draw_challenge(), {}};
  if (random() % 4 == 0) opening.greeting.rank = static_cast<int>(random());
  add(opening);
  if (random() % 2 == 0) add(Proof{});
  Word word;
  word.kind = static_cast<Word::Kind>(random() % 9), word.fault = static_cast<int>(random() % 200);
  if (random() % 2 == 0) add(word);
  Notice notice;
  notice.kind = static_cast<Notice::Kind>(random() % 6), notice.rank = -100'000'000;
  notice.fault = 99;
  if (random() % 2 == 0) add(notice);
  for (int i = 0; i < 3 && random() % 2 == 0; ++i)
    out[random() % out.size()] = static_cast<char>(random());
  if (random() % 4 == 0) out.resize(random() % out.size());
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: impostor SECONDS LETTERS\n");
    return 2;
  }
  const Moment until = steady_clock::now() + std::chrono::seconds(std::atoi(argv[1]));
  const int most = std::atoi(argv[2]);
  std::mt19937 random(std::random_device{}());
  const Secret guess(draw_secret());
  std::vector<Socket> silent;  // kept, and says nothing
  int sent = 0, welcomed = 0;
  while (sent < most && steady_clock::now() < until) {
    for (const int port : ports()) {
      std::string why;
      const auto connects = [&] {
        Socket socket = begin_connect(addresses_of("127.0.0.1", port, why).front());
        const bool there = socket.open() && await_socket(socket, true, steady_clock::now() + 100ms);
        return there && connected(socket) == 0 ? std::move(socket) : Socket();
      };
      if (Socket socket = connects(); socket.open()) {  // as a rank with another secret
        Rendezvous where;
        where.rank = 1 + static_cast<int>(random() % 3), where.size = 4;
        const Reception how = introduce(std::move(socket), greeting_of(where, 0, 4711), guess,
                                        steady_clock::now() + 50ms);
        welcomed += how.how == Reception::Welcome;
        ++sent;
      }
      if (Socket socket = connects(); socket.open()) {
        const std::string bytes = hostile(random);
        send_all(socket, bytes.data(), bytes.size(), steady_clock::now() + 50ms);
        ++sent;
        if (silent.size() < 200) silent.push_back(std::move(socket));
      }
    }
    if (silent.size() >= 200) silent.clear();
    std::this_thread::sleep_for(1ms);
  }
  std::printf("%d letters, %d welcomed\n", sent, welcomed);
}
