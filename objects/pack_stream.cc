#include "objects/pack_stream.h"

#include <openssl/evp.h>

#include <array>
#include <cstring>

#include "objects/pack_file.h"
#include "storage/check.h"

namespace repotxn::objects {

struct PackStream::Hash {
  explicit Hash(ObjectFormat format) : context(EVP_MD_CTX_new()) {
    is_ready = context != nullptr &&
               EVP_DigestInit_ex(context, format == ObjectFormat::kSha1 ? EVP_sha1() : EVP_sha256(),
                                 nullptr) == 1;
  }
  ~Hash() { EVP_MD_CTX_free(context); }
  Hash(const Hash&) = delete;
  Hash& operator=(const Hash&) = delete;

  void Add(absl::string_view bytes) {
    is_ready = is_ready && EVP_DigestUpdate(context, bytes.data(), bytes.size()) == 1;
  }

  EVP_MD_CTX* const context;
  bool is_ready = false;
};

PackStream::PackStream(ObjectFormat format)
    : trailer_bytes_(ObjectIdBytes(format)), hash_(std::make_unique<Hash>(format)) {}

PackStream::~PackStream() = default;

void PackStream::Add(absl::string_view bytes) {
  bytes_ += static_cast<int64_t>(bytes.size());
  if (bytes.size() >= trailer_bytes_) {
    hash_->Add(tail_);
    hash_->Add(bytes.substr(0, bytes.size() - trailer_bytes_));
    const absl::string_view last = bytes.substr(bytes.size() - trailer_bytes_);
    tail_.assign(last.data(), last.size());
    return;
  }
  tail_.append(bytes.data(), bytes.size());
  if (tail_.size() <= trailer_bytes_) return;
  const size_t surplus = tail_.size() - trailer_bytes_;
  hash_->Add(absl::string_view(tail_.data(), surplus));
  tail_.erase(0, surplus);
}

bool PackStream::EndsInItsTrailer() {
  if (bytes_ < kPackHeaderBytes + static_cast<int64_t>(trailer_bytes_)) return false;
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  // A copy, so that the stream may go on.
  EVP_MD_CTX* const copy = EVP_MD_CTX_new();
  const bool is_done = hash_->is_ready && copy != nullptr &&
                       EVP_MD_CTX_copy_ex(copy, hash_->context) == 1 &&
                       EVP_DigestFinal_ex(copy, digest.data(), &size) == 1;
  EVP_MD_CTX_free(copy);
  REPOTXN_DCHECK(!is_done || size == trailer_bytes_);
  return is_done && std::memcmp(digest.data(), tail_.data(), trailer_bytes_) == 0;
}

}  // namespace repotxn::objects
