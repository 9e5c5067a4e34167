package audit

import (
	"cmp"
	"sync"

	"github.com/tidwall/btree"

	"github.com/musterd/muster/api"
)

// Bounds of a Log.
const (
	// mostEntries bounds the entries in memory, some 450 bytes each. The oldest entry of the
	// owner with the most entries goes first.
	mostEntries = 100_000
	// mostLooked bounds the entries that one page looks at.
	mostLooked = 50_000
)

// Log is entries by id, which is by time. Any number of goroutines may use it. The zero
// value is empty.
type Log struct {
	mu      sync.Mutex
	entries btree.Map[string, *api.AuditEntry]
	owners  map[string]*btree.Set[string] // ids of entries, by ownerOf
	sizes   *btree.BTreeG[owned]          // of owners
	most    int                           // 0 = mostEntries
}

// Add takes an entry, which stays unchanged from then on, in place of an entry of the same
// id.
func (l *Log) Add(e *api.AuditEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, found := l.entries.Set(e.ID, e); found {
		return
	}
	if l.owners == nil {
		l.owners, l.sizes = map[string]*btree.Set[string]{}, btree.NewBTreeG(owned.less)
	}
	owner := ownerOf(e)
	if l.owners[owner] == nil {
		l.owners[owner] = new(btree.Set[string])
	}
	l.resize(owner, func(ids *btree.Set[string]) { ids.Insert(e.ID) })
	if l.entries.Len() <= cmp.Or(l.most, mostEntries) {
		return
	}
	greatest, _ := l.sizes.Max()
	l.resize(greatest.by, func(ids *btree.Set[string]) {
		oldest, _ := ids.PopMin()
		l.entries.Delete(oldest)
	})
}

// owned is how many entries an owner has.
type owned struct {
	entries int
	by      string
}

func (o owned) less(p owned) bool {
	return cmp.Or(cmp.Compare(o.entries, p.entries), cmp.Compare(o.by, p.by)) < 0
}

// resize changes the ids of an owner. l.mu is held.
func (l *Log) resize(owner string, change func(*btree.Set[string])) {
	ids := l.owners[owner]
	l.sizes.Delete(owned{ids.Len(), owner})
	change(ids)
	if ids.Len() == 0 {
		delete(l.owners, owner)
		return
	}
	l.sizes.Set(owned{ids.Len(), owner})
}

// Len counts the entries.
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries.Len()
}

// page is the newest entries before an id, "" for the newest of all, that match, and the
// id before which the next page begins, "" at the end. It looks at no more than looked
// entries.
func (l *Log) page(before string, limit, looked int, match func(*api.AuditEntry) bool) (all []*api.AuditEntry, more string) {
	l.mu.Lock()
	entries := l.entries.Copy() // which takes O(1)
	l.mu.Unlock()
	take := func(id string, e *api.AuditEntry) bool {
		switch {
		case id == before:
			return true
		case len(all) == limit || looked == 0:
			return false
		}
		looked--
		more = id
		if match(e) {
			all = append(all, e)
		}
		return true
	}
	if before == "" {
		entries.Reverse(take)
	} else {
		entries.Descend(before, take)
	}
	if oldest, _, found := entries.Min(); !found || more == oldest {
		more = ""
	}
	return all, more
}
