#include "objects/pack_links.h"

#include <memory>
#include <vector>

#include "objects/object_reader.h"
#include "objects/object_type.h"
#include "storage/status_macros.h"

namespace repotxn::objects {
namespace {

constexpr int64_t kLinkingBytesMax = int64_t{256} << 20;

}  // namespace

absl::Status VisitPackLinks(storage::FileSystem& fs, const storage::StorePath& directory, absl::string_view name,
                            ObjectFormat format, const ShallowCommits& shallow, const LinkVisitor& visit) {
  REPOTXN_ASSIGN_OR_RETURN(const std::shared_ptr<const Pack> pack, Pack::Open(fs, directory, name, format));
  for (int64_t row = 0; row < pack->index().count(); ++row) {
    REPOTXN_ASSIGN_OR_RETURN(const int64_t offset, pack->index().OffsetAt(row));
    REPOTXN_ASSIGN_OR_RETURN(const ObjectInfo info, pack->Info(offset));
    if (info.type == ObjectType::kBlob) continue;
    REPOTXN_ASSIGN_OR_RETURN(const ObjectContent object, pack->Read(offset, kLinkingBytesMax));
    REPOTXN_ASSIGN_OR_RETURN(std::vector<ObjectId> links, ParseObjectLinks(object.type, object.content, format));
    REPOTXN_ASSIGN_OR_RETURN(const ObjectId oid, pack->index().IdAt(row));
    if (object.type == ObjectType::kCommit && shallow.contains(oid)) links.resize(1);
    REPOTXN_RETURN_IF_ERROR(visit(oid, object.type, links));
  }
  return absl::OkStatus();
}

}  // namespace repotxn::objects
