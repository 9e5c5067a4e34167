// Package ranked keeps entries in the order of their keys. Each entry has a
// position, and the entries before it have a sum. It decides nothing: callers
// choose keys, values and sums.
//
// The tree is balanced by weight (Nievergelt and Reingold, "Binary search trees
// of bounded balance", 1973), because positions need the sizes of subtrees
// anyway. Its shape follows from the operations alone. Insert, Delete, Find, At
// and Position take O(log n). Sums are computed when they are asked for: a
// change marks the sums above it as stale, up to the first one that is stale
// already, so that a walk that changes each entry costs O(1) for each.
package ranked

import (
	"fmt"
	"iter"
)

// Key orders entries. Compare is negative when the key comes before the other
// one, and 0 when both are the same.
type Key[K any] interface {
	Compare(K) int
}

// Value is an entry's content. Sum returns the sum of a subtree: of the value,
// of the entries on its left and of those on its right. The zero S is the sum
// of no entries. The sum must depend on the entries alone, not on the shape of
// the tree.
type Value[S any] interface {
	Sum(left, right S) S
}

// Tree is a set of entries. The zero value is empty. One goroutine owns it; All,
// At, Find, From, Len, Position and Next write nothing, but SumBefore and Select
// keep the sums that they compute.
type Tree[K Key[K], V Value[S], S any] struct {
	root *Entry[K, V, S]
}

// Entry is a key with its value. Its pointer stays the same until it is deleted.
//
// Invariant: size counts the entry and those of both sides. The weights (size+1)
// of both sides differ at most by the factor delta. A fresh sum is that of the
// entries below; above a stale one all are stale.
type Entry[K Key[K], V Value[S], S any] struct {
	left, right, parent *Entry[K, V, S]

	size  int
	stale bool // sum is to be computed
	key   K
	value V
	sum   S
}

// FromSorted returns a tree of keys that ascend, with zero values, in O(n). It
// panics if they do not ascend.
func FromSorted[K Key[K], V Value[S], S any](keys []K) Tree[K, V, S] {
	for i := 1; i < len(keys); i++ {
		if keys[i-1].Compare(keys[i]) >= 0 {
			panic(fmt.Sprintf("ranked: key %d of %d is %v, after %v", i, len(keys), keys[i], keys[i-1]))
		}
	}
	return Tree[K, V, S]{root: grow[K, V, S](keys)}
}

// grow makes a tree whose sides differ by at most one entry.
func grow[K Key[K], V Value[S], S any](keys []K) *Entry[K, V, S] {
	if len(keys) == 0 {
		return nil
	}
	middle := len(keys) / 2
	e := &Entry[K, V, S]{key: keys[middle], size: len(keys), stale: true}
	e.setLeft(grow[K, V, S](keys[:middle]))
	e.setRight(grow[K, V, S](keys[middle+1:]))
	return e
}

// Len counts the entries.
func (t *Tree[K, V, S]) Len() int { return t.root.len() }

// Find returns the entry of a key, nil where there is none.
func (t *Tree[K, V, S]) Find(k K) *Entry[K, V, S] {
	e := t.root
	for e != nil {
		c := k.Compare(e.key)
		switch {
		case c < 0:
			e = e.left
		case c > 0:
			e = e.right
		default:
			return e
		}
	}
	return nil
}

// From returns the first entry that is not before a key, nil where there is
// none. Next goes on from there.
func (t *Tree[K, V, S]) From(k K) *Entry[K, V, S] {
	var from *Entry[K, V, S]
	for e := t.root; e != nil; {
		if k.Compare(e.key) > 0 {
			e = e.right
			continue
		}
		from = e
		e = e.left
	}
	return from
}

// At returns the entry at a position, nil where there is none.
func (t *Tree[K, V, S]) At(position int) *Entry[K, V, S] {
	if position < 0 || position >= t.Len() {
		return nil
	}
	e := t.root
	for {
		left := e.left.len()
		switch {
		case position < left:
			e = e.left
		case position == left:
			return e
		default:
			position -= left + 1
			e = e.right
		}
	}
}

// All yields the entries in order. The entry that was yielded may be deleted.
func (t *Tree[K, V, S]) All() iter.Seq[*Entry[K, V, S]] {
	return func(yield func(*Entry[K, V, S]) bool) {
		for e := t.root.first(); e != nil; {
			next := e.Next()
			if !yield(e) {
				return
			}
			e = next
		}
	}
}

// Insert adds an entry and returns it. A key that is there already keeps its
// entry and value, and Insert returns that entry and false.
func (t *Tree[K, V, S]) Insert(k K, v V) (*Entry[K, V, S], bool) {
	added := &Entry[K, V, S]{key: k, value: v, size: 1, stale: true}
	if t.root == nil {
		t.root = added
		return added, true
	}
	for e := t.root; ; {
		c := k.Compare(e.key)
		switch {
		case c == 0:
			return e, false
		case c < 0 && e.left != nil:
			e = e.left
			continue
		case c > 0 && e.right != nil:
			e = e.right
			continue
		case c < 0:
			e.setLeft(added)
		default:
			e.setRight(added)
		}
		t.restore(e)
		return added, true
	}
}

// Delete takes out an entry that is in the tree. The entry keeps its key and
// value.
func (t *Tree[K, V, S]) Delete(e *Entry[K, V, S]) {
	changed := e.parent
	switch {
	case e.left == nil:
		t.replace(e, e.right)
	case e.right == nil:
		t.replace(e, e.left)
	default: // the next entry takes its place
		next := e.right.first()
		changed = next
		if next.parent != e {
			changed = next.parent
			t.replace(next, next.right)
			next.setRight(e.right)
		}
		next.setLeft(e.left)
		t.replace(e, next)
	}
	e.left, e.right, e.parent, e.size, e.stale = nil, nil, nil, 1, true
	t.restore(changed)
}

// Key returns the entry's key.
func (e *Entry[K, V, S]) Key() K { return e.key }

// Value returns the entry's value.
func (e *Entry[K, V, S]) Value() V { return e.value }

// Set changes the entry's value.
func (e *Entry[K, V, S]) Set(v V) {
	e.value = v
	for ; e != nil && !e.stale; e = e.parent {
		e.stale = true
	}
}

// Position counts the entries before this one.
func (e *Entry[K, V, S]) Position() int {
	position := e.left.len()
	for ; e.parent != nil; e = e.parent {
		if e == e.parent.right {
			position += e.parent.left.len() + 1
		}
	}
	return position
}

// Next returns the entry after this one, nil after the last.
func (e *Entry[K, V, S]) Next() *Entry[K, V, S] {
	if e.right != nil {
		return e.right.first()
	}
	for e.parent != nil && e == e.parent.right {
		e = e.parent
	}
	return e.parent
}
