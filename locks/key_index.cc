#include "locks/key_index.h"

#include <algorithm>

#include "storage/check.h"

namespace repotxn::locks {
namespace {

wal::Lsn NewestOf(const KeyNode* node) { return node == nullptr ? wal::Lsn::Zero() : node->newest; }

void Update(KeyNode* node) {
  node->newest = std::max({node->lsn, NewestOf(node->left), NewestOf(node->right)});
}

KeyNode* RotateRight(KeyNode* node) {
  KeyNode* top = node->left;
  node->left = top->right;
  top->right = node;
  Update(node);
  Update(top);
  return top;
}

KeyNode* RotateLeft(KeyNode* node) {
  KeyNode* top = node->right;
  node->right = top->left;
  top->left = node;
  Update(node);
  Update(top);
  return top;
}

// The tree is O(log n) deep by its random priorities, so that recursion is safe.
KeyNode* InsertBelow(KeyNode* top, KeyNode* node) {
  if (top == nullptr) {
    node->newest = node->lsn;
    return node;
  }
  const int order = node->key().compare(top->key());
  if (order == 0) {
    REPOTXN_DCHECK(node->lsn >= top->lsn);
    node->left = top->left;
    node->right = top->right;
    node->priority = top->priority;
    top->attached = false;
    Update(node);
    return node;
  }
  if (order < 0) {
    top->left = InsertBelow(top->left, node);
    if (top->left->priority > top->priority) return RotateRight(top);
  } else {
    top->right = InsertBelow(top->right, node);
    if (top->right->priority > top->priority) return RotateLeft(top);
  }
  Update(top);
  return top;
}

// Joins two trees, every key of `left` being below every key of `right`.
KeyNode* Join(KeyNode* left, KeyNode* right) {
  if (left == nullptr) return right;
  if (right == nullptr) return left;
  if (left->priority >= right->priority) {
    left->right = Join(left->right, right);
    Update(left);
    return left;
  }
  right->left = Join(left, right->left);
  Update(right);
  return right;
}

KeyNode* EraseBelow(KeyNode* top, KeyNode* node) {
  if (REPOTXN_NEVER(top == nullptr)) return nullptr;
  if (top == node) return Join(node->left, node->right);
  KeyNode*& side = node->key() < top->key() ? top->left : top->right;
  side = EraseBelow(side, node);
  Update(top);
  return top;
}

wal::Lsn NewestFrom(const KeyNode* node, absl::string_view first) {
  wal::Lsn newest;
  while (node != nullptr) {
    if (node->key() < first) {
      node = node->right;
      continue;
    }
    newest = std::max({newest, node->lsn, NewestOf(node->right)});
    node = node->left;
  }
  return newest;
}

wal::Lsn NewestBefore(const KeyNode* node, absl::string_view end) {
  if (end.empty()) return NewestOf(node);
  wal::Lsn newest;
  while (node != nullptr) {
    if (node->key() >= end) {
      node = node->left;
      continue;
    }
    newest = std::max({newest, node->lsn, NewestOf(node->left)});
    node = node->right;
  }
  return newest;
}

}  // namespace

void KeyIndex::Insert(KeyNode* node) {
  node->left = node->right = nullptr;
  node->attached = true;
  root_ = InsertBelow(root_, node);
}

void KeyIndex::Erase(KeyNode* node) {
  if (!node->attached) return;
  root_ = EraseBelow(root_, node);
  node->attached = false;
}

wal::Lsn KeyIndex::NewestIn(absl::string_view first, absl::string_view end) const {
  if (!end.empty() && end <= first) return wal::Lsn::Zero();
  // Down to the node where the two bounds part; from there each bound has one side.
  const KeyNode* node = root_;
  while (node != nullptr) {
    if (node->key() < first) {
      node = node->right;
    } else if (!end.empty() && node->key() >= end) {
      node = node->left;
    } else {
      return std::max(
          {node->lsn, NewestFrom(node->left, first), NewestBefore(node->right, end)});
    }
  }
  return wal::Lsn::Zero();
}

}  // namespace repotxn::locks
