#include "tessera/comm/process/rank_table.h"

#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "tessera/base/error.h"

namespace tessera::process {

namespace {

using Json = nlohmann::json;
constexpr int kMostRanks = 1 << 20;

class TableReader {
 public:
  TableReader(std::string_view text, const std::string& path) : path_(path) {
    table_ = Json::parse(text, nullptr, false);
    if (table_.is_discarded()) wrong("is not JSON");
    if (!table_.is_object()) wrong("is not an object {...}");
  }

  RankTable read() {
    if (const std::string status = word(table_, "status"); !status.empty() && status != "completed")
      wrong(text("has the status '", status, "', and must be 'completed'; wait until it is"));
    const Json& servers = list(table_, "server_list");
    std::map<int, RankTable::Rank> ranks;
    for (const Json& server : servers) {
      if (!server.is_object()) wrong("has a server that is not an object {...}");
      for (const Json& device : list(server, "device")) {
        if (!device.is_object()) wrong("has a device that is not an object {...}");
        const int rank = number(device, "rank_id");
        const auto [old, fresh] =
            ranks.try_emplace(rank, RankTable::Rank{address(server), number(device, "device_id")});
        if (!fresh)
          wrong(text("has rank ", rank, " twice, on ", old->second.server, " and ", address(server),
                     "; give each device a rank_id of its own"));
      }
    }
    RankTable out;
    out.servers = static_cast<int>(servers.size());
    if (table_.contains("server_count") && number(table_, "server_count") != out.servers)
      wrong(text("has server_count ", number(table_, "server_count"), ", and server_list has ",
                 out.servers, "; give all servers, and their count"));
    for (auto& [rank, place] : ranks) {
      if (rank != static_cast<int>(out.ranks.size()))
        wrong(text("lacks rank ", out.ranks.size(), " of the ranks 0 to ", ranks.rbegin()->first));
      out.ranks.push_back(std::move(place));
    }
    if (out.ranks.empty()) wrong("has no device");
    return out;
  }

 private:
  [[noreturn]] void wrong(const std::string& what) const {
    fail(Fault::Usage, "RANK_TABLE_FILE: '", path_, "' ", what);
  }
  const Json& list(const Json& object, const char* name) const {
    const auto found = object.find(name);
    if (found == object.end() || !found->is_array())
      wrong(text("has no list \"", name,
                 "\"; a rank table is {\"server_count\", \"server_list\": "
                 "[{\"server_id\", \"device\": [{\"device_id\", \"rank_id\"}]}], \"status\"}"));
    return *found;
  }
  std::string word(const Json& object, const char* name) const {
    const auto found = object.find(name);
    if (found == object.end()) return {};
    if (!found->is_string()) wrong(text("has a \"", name, "\" that is not a text"));
    return found->get<std::string>();
  }
  int number(const Json& object, const char* name) const {
    const auto found = object.find(name);
    if (found == object.end()) wrong(text("has a part without \"", name, "\""));
    const std::string shown = found->is_string() ? found->get<std::string>() : found->dump();
    int out = -1;
    const auto [end, error] = std::from_chars(shown.data(), shown.data() + shown.size(), out);
    if (error != std::errc() || end != shown.data() + shown.size() || out < 0 || out > kMostRanks)
      wrong(text("has the ", name, " '", shown.substr(0, 40),
                 "', which is not a whole number from 0 to ", kMostRanks));
    return out;
  }
  std::string address(const Json& server) const {
    const std::string card = word(server, "host_nic_ip");
    // "reserve" says that there is none.
    return card.find_first_of(".:") != std::string::npos ? card : word(server, "server_id");
  }

  const std::string& path_;
  Json table_;
};

}  // namespace

RankTable parse_rank_table(std::string_view json, const std::string& path) {
  return TableReader(json, path).read();
}

}  // namespace tessera::process
