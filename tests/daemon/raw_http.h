// A client that sends exactly the bytes a test wants, and reads the answer to the end.
//
// Single-threaded.
#ifndef REPOTXN_TESTS_DAEMON_RAW_HTTP_H_
#define REPOTXN_TESTS_DAEMON_RAW_HTTP_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"

namespace repotxn::testing {

class RawConnection {
 public:
  explicit RawConnection(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_open_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~RawConnection() { close(fd_); }
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  bool is_open() const { return is_open_; }
  // False when the server has closed.
  bool Send(const std::string& bytes) {
    size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t n = send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return false;
      sent += static_cast<size_t>(n);
    }
    return true;
  }
  void EndSending() { shutdown(fd_, SHUT_WR); }
  // What comes until `until` has been seen, the server closes, or 20 s of silence.
  std::string Read(const std::string& until = "") {
    std::string all;
    char buffer[4096];
    while (until.empty() || all.find(until) == std::string::npos) {
      pollfd waiting = {fd_, POLLIN, 0};
      if (poll(&waiting, 1, 20'000) <= 0) return all + "<silence>";
      const ssize_t n = recv(fd_, buffer, sizeof(buffer), 0);
      if (n <= 0) break;
      all.append(buffer, static_cast<size_t>(n));
    }
    return all;
  }

 private:
  int fd_;
  bool is_open_ = false;
};

// One exchange on a connection of its own. The whole answer, headers and all.
inline std::string RawExchange(int port, const std::string& request) {
  RawConnection connection(port);
  connection.Send(request);
  return connection.Read();
}

// Status code of an answer; 0 when it is none.
inline int StatusOfAnswer(const std::string& answer) {
  return answer.size() > 12 && answer.rfind("HTTP/1.1 ", 0) == 0 ? std::atoi(answer.c_str() + 9) : 0;
}

inline std::string PostHead(const std::string& path, const std::string& more) {
  return absl::StrCat("POST ", path, " HTTP/1.1\r\nHost: test\r\nConnection: close\r\n", more,
                      "\r\n");
}

}  // namespace repotxn::testing

#endif  // REPOTXN_TESTS_DAEMON_RAW_HTTP_H_
