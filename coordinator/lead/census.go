package lead

import "github.com/musterd/muster/api"

// maxNamespaceDocuments bounds the documents of a namespace together, in bytes.
const maxNamespaceDocuments = 64 << 20

// census counts what each namespace has stored. The zero value has not counted
// yet.
//
// Invariant: once counted, it agrees with the leader's units.
type census map[string]holding

// holding is what one namespace has stored.
type holding struct {
	allocations int
	documents   int64 // bytes
}

// holdingOf is what a unit adds to its namespace. A job's document counts with
// its first unit, which lives as long as the job.
func holdingOf(u *unit) holding {
	h := holding{allocations: u.record.Members, documents: int64(len(u.record.Document))}
	if u.job != nil && u.record.N == 0 {
		h.documents += int64(len(u.job.record.Document))
	}
	return h
}

func (c census) add(u *unit) {
	if c == nil {
		return
	}
	h, more := c[u.record.Namespace], holdingOf(u)
	c[u.record.Namespace] = holding{h.allocations + more.allocations, h.documents + more.documents}
}

func (c census) remove(u *unit) {
	if c == nil {
		return
	}
	h, less := c[u.record.Namespace], holdingOf(u)
	if h = (holding{h.allocations - less.allocations, h.documents - less.documents}); h == (holding{}) {
		delete(c, u.record.Namespace)
		return
	}
	c[u.record.Namespace] = h
}

// hasRoom refuses a submission with 429 where its namespace has too much stored
// already.
func (l *Leader) hasRoom(s *submission) *api.Status {
	if l.census == nil {
		l.census = census{}
		for _, u := range l.units {
			l.census.add(u)
		}
	}
	namespace := s.units[0].record.Namespace
	has, most := l.census[namespace], l.rules.NamespaceAllocations
	allocations, documents := 0, int64(0)
	for _, u := range s.units {
		more := holdingOf(u)
		allocations, documents = allocations+more.allocations, documents+more.documents
	}
	var status *api.Status
	switch {
	case has.allocations+allocations > most:
		status = api.Errorf(429, "namespace %s has %d allocations and may have %d: there is no room for %d more; delete what has ended, or ask an operator to raise limits.allocationsPerNamespace",
			namespace, has.allocations, most, allocations)
	case has.documents+documents > maxNamespaceDocuments:
		status = api.Errorf(429, "namespace %s has documents of %d bytes and may have %d: there is no room for %d more; delete what has ended",
			namespace, has.documents, maxNamespaceDocuments, documents)
	default:
		return nil
	}
	status.Reason = api.TooManyObjects
	return status
}
