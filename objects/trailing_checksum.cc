#include "objects/trailing_checksum.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <memory>

#include "absl/strings/escaping.h"
#include "objects/error_detail.h"
#include "storage/status_macros.h"

namespace repotxn::objects {
namespace {

constexpr int64_t kPieceBytes = 256 << 10;

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

}  // namespace

absl::StatusOr<std::string> VerifyTrailingChecksum(const storage::ReadableFile& file, absl::string_view name,
                                                   ObjectFormat format) {
  const int64_t hash_bytes = static_cast<int64_t>(ObjectIdBytes(format));
  REPOTXN_ASSIGN_OR_RETURN(const int64_t size, file.Size());
  if (size <= hash_bytes) return Damaged("file is too short for its checksum", name, size);
  const std::unique_ptr<EVP_MD_CTX, FreeContext> context(EVP_MD_CTX_new());
  const EVP_MD* const hash = format == ObjectFormat::kSha1 ? EVP_sha1() : EVP_sha256();
  bool is_hashed = context != nullptr && EVP_DigestInit_ex(context.get(), hash, nullptr) == 1;
  std::string piece;
  int64_t at = 0;
  while (at < size - hash_bytes) {
    piece.resize(static_cast<size_t>(std::min(kPieceBytes, size - hash_bytes - at)));
    REPOTXN_ASSIGN_OR_RETURN(const size_t got, file.ReadAt(at, absl::MakeSpan(&piece[0], piece.size())));
    if (got != piece.size()) return Damaged("file ends too early", name, at);
    is_hashed = is_hashed && EVP_DigestUpdate(context.get(), piece.data(), piece.size()) == 1;
    at += static_cast<int64_t>(got);
  }
  std::string recorded(static_cast<size_t>(hash_bytes), '\0');
  REPOTXN_ASSIGN_OR_RETURN(const size_t got, file.ReadAt(at, absl::MakeSpan(&recorded[0], recorded.size())));
  if (got != recorded.size()) return Damaged("file ends too early", name, at);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int digest_bytes = 0;
  is_hashed = is_hashed && EVP_DigestFinal_ex(context.get(), digest.data(), &digest_bytes) == 1;
  if (!is_hashed) return absl::ResourceExhaustedError("a file cannot be hashed");
  if (recorded != absl::string_view(reinterpret_cast<const char*>(digest.data()), digest_bytes)) {
    return Damaged("file does not end in its checksum", name, at);
  }
  return absl::BytesToHexString(recorded);
}

}  // namespace repotxn::objects
