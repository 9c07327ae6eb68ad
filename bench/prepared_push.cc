#include "bench/prepared_push.h"

#include <openssl/sha.h>
#include <zlib.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace repotxn::bench {
namespace {

constexpr int kCommit = 1;  // type numbers of pack entries
constexpr int kTree = 2;
constexpr int kBlob = 3;

std::string Sha1(const std::string& bytes) {
  std::string digest(SHA_DIGEST_LENGTH, '\0');
  SHA1(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
       reinterpret_cast<unsigned char*>(&digest[0]));
  return digest;
}

std::string Deflate(const std::string& bytes) {
  uLongf size = compressBound(bytes.size());
  std::string out(size, '\0');
  compress(reinterpret_cast<Bytef*>(&out[0]), &size, reinterpret_cast<const Bytef*>(bytes.data()),
           bytes.size());
  out.resize(size);
  return out;
}

// Collects objects into a pack.
class Pack {
 public:
  ObjectId Add(int type, const char* type_name, const std::string& content) {
    size_t rest = content.size() >> 4;
    auto byte = static_cast<unsigned char>(static_cast<size_t>(type) << 4 | (content.size() & 15));
    while (rest > 0) {
      entries_ += static_cast<char>(byte | 0x80);
      byte = static_cast<unsigned char>(rest & 0x7f);
      rest >>= 7;
    }
    entries_ += static_cast<char>(byte);
    entries_ += Deflate(content);
    ++count_;
    return *ObjectId::FromBytes(
        Sha1(absl::StrCat(type_name, " ", content.size()) + std::string(1, '\0') + content));
  }
  std::string Bytes() const {
    std::string pack("PACK\0\0\0\2\0\0\0", 11);  // version 2; fewer than 256 objects
    pack += static_cast<char>(count_);
    pack += entries_;
    return pack + Sha1(pack);
  }

 private:
  std::string entries_;
  int count_ = 0;
};

// `parent`: "" or a line of the commit.
PreparedPush Make(const std::string& ref, const std::string& text, const std::string& parent) {
  Pack pack;
  const ObjectId blob = pack.Add(kBlob, "blob", text);
  const absl::string_view raw = blob.bytes();
  const ObjectId tree = pack.Add(
      kTree, "tree",
      std::string("100644 file") + std::string(1, '\0') + std::string(raw.data(), raw.size()));
  PreparedPush push;
  push.ref = ref;
  push.commit = pack.Add(kCommit, "commit",
                         absl::StrCat("tree ", tree.ToHex(), "\n", parent,
                                      "author A <a@example.org> 1700000000 +0000\n"
                                      "committer A <a@example.org> 1700000000 +0000\n\n",
                                      text));
  std::string command = absl::StrCat(std::string(40, '0'), " ", push.commit.ToHex(), " ", ref);
  command += std::string(1, '\0') + " report-status side-band-64k object-format=sha1 agent=bench";
  push.body = absl::StrFormat("%04x", command.size() + 4) + command + "0000";
  push.pack_at = push.body.size();
  push.body += pack.Bytes();
  return push;
}

}  // namespace

PreparedPush FirstPush() { return Make("refs/heads/main", "first\n", ""); }

PreparedPush PushNumber(int64_t number, const ObjectId& parent) {
  return Make(absl::StrCat("refs/heads/b", number), absl::StrCat("push ", number, "\n"),
              absl::StrCat("parent ", parent.ToHex(), "\n"));
}

bool IsAccepted(const std::string& answer, const PreparedPush& push) {
  return answer.find("unpack ok\n") != std::string::npos &&
         answer.find("ok " + push.ref + "\n") != std::string::npos;
}

}  // namespace repotxn::bench
