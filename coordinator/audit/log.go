package audit

import (
	"sync"

	"github.com/tidwall/btree"

	"github.com/musterd/muster/api"
)

// Bounds of a Log.
const (
	// mostEntries bounds the entries in memory, some 400 bytes each. The oldest go
	// first.
	mostEntries = 100_000
	// mostLooked bounds the entries that one page looks at.
	mostLooked = 50_000
)

// Log is entries by id, which is by time. Any number of goroutines may use it. The zero
// value is empty.
type Log struct {
	mu      sync.Mutex
	entries btree.Map[string, *api.AuditEntry]
	most    int // 0 = mostEntries
}

// Add takes an entry, which nobody changes from then on. An entry whose id is there
// already is the same.
func (l *Log) Add(e *api.AuditEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries.Set(e.ID, e)
	most := l.most
	if most == 0 {
		most = mostEntries
	}
	if l.entries.Len() > most {
		l.entries.PopMin()
	}
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
