package ledger

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/musterd/muster/resource"
)

// Attempt is the part of a transaction's identifier that orders attempts: a
// leader's election, and its count within that. The zero value is before all.
type Attempt struct {
	Epoch   resource.Epoch
	Counter uint64
}

// compare orders attempts as leaders make them.
func (a Attempt) compare(b Attempt) int {
	return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Counter, b.Counter))
}

func later(a, b Attempt) Attempt {
	if a.compare(b) < 0 {
		return b
	}
	return a
}

// attemptOf reads UNIT.EPOCH.COUNTER.NONCE, without allocating; the zero value
// where the identifier is nobody's attempt.
func attemptOf(tx resource.TxID) Attempt {
	s, _, ok := cutLast(string(tx))
	if !ok {
		return Attempt{}
	}
	s, counter, ok := cutLast(s)
	if !ok {
		return Attempt{}
	}
	_, epoch, ok := cutLast(s)
	if !ok {
		return Attempt{}
	}
	n, err := strconv.ParseUint(counter, 16, 64)
	if err != nil {
		return Attempt{}
	}
	e, err := strconv.ParseInt(epoch, 16, 64)
	if err != nil || e < 0 {
		return Attempt{}
	}
	return Attempt{resource.Epoch(e), n}
}

func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}

// forget takes up that the tombstone of a transaction is gone. One of an epoch
// that no leader has announced here is of a store that was restored since, and
// has no bearing on this store's attempts.
func (l *Ledger) forget(tx resource.TxID) {
	if a := attemptOf(tx); a.Epoch <= l.epoch {
		l.forgotten = later(l.forgotten, a)
	}
}

// isForgotten reports whether a transaction that is unknown here may have ended
// here already: a leader counts its attempts up and a stream keeps their order,
// so a Reserve that comes for the first time is of a newer attempt than any
// that has come and gone. Without this a Reserve and a Commit that the network
// repeats, long after, would make a grant that has no record.
func (l *Ledger) isForgotten(tx resource.TxID) bool {
	if l.forgotten == (Attempt{}) {
		return false
	}
	a := attemptOf(tx)
	return a != (Attempt{}) && a.compare(l.forgotten) <= 0
}
