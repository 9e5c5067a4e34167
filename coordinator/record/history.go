package record

import (
	"errors"
	"fmt"

	"github.com/musterd/muster/resource"
)

// The keys of the history (ADR 78).
const (
	HistoryPrefix = Root + "history/"
	// HistoryPositionKey holds HistoryPosition.
	HistoryPositionKey = HistoryPrefix + "position"
	// HistoryRebuiltKey holds HistoryPosition of the last rebuild that has changed rows: the
	// projector begins again behind it.
	HistoryRebuiltKey = HistoryPrefix + "rebuilt"
	// ProjectorPrefix holds LeaderAddress of the candidates for the projector, each on a
	// lease, as LeaderPrefix does for the leader.
	ProjectorPrefix = HistoryPrefix + "projector/"
)

// HistoryPosition is how far the history is durable: in the database, or in the spool of
// one coordinator (HistoryPositionKey). The store keeps the changes behind it, within
// bounds.
type HistoryPosition struct {
	Revision resource.Revision `json:"revision"`
	// SpoolOwner is the coordinator whose spool has the last part; "" while the database
	// has everything. SpoolAfter is the revision up to which the database has it.
	SpoolOwner string            `json:"spoolOwner,omitempty"`
	SpoolAfter resource.Revision `json:"spoolAfter,omitempty"`
}

func (p HistoryPosition) check() error {
	switch {
	case p.Revision < 0 || p.SpoolAfter < 0 || p.SpoolAfter > p.Revision:
		return fmt.Errorf("revision %d, spoolAfter %d: want 0 <= spoolAfter <= revision", p.Revision, p.SpoolAfter)
	case p.SpoolOwner == "" && p.SpoolAfter != 0:
		return errors.New("spoolAfter without a spoolOwner")
	}
	return nil
}

// CandidateKey is the key of a candidate below a prefix, named after the candidate's
// lease.
func CandidateKey(prefix string, lease LeaseID) string {
	return fmt.Sprintf("%s%016x", prefix, uint64(lease))
}
