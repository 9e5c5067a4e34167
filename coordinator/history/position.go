package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/resource"
)

// PositionError refuses a batch that does not follow the position of the history:
// another projector has written since, or the batch was written before.
type PositionError struct {
	Has   resource.Revision // the position of the history
	After resource.Revision // that of the batch
}

// Error names both positions.
func (e *PositionError) Error() string {
	return fmt.Sprintf("the history stands at revision %d and the batch follows revision %d: read the position again", e.Has, e.After)
}

// IsOpen reports whether the eviction has not ended.
func (p Preemption) IsOpen() bool { return p.Outcome == OutcomeEvicting }

// OutcomeEvicting is the outcome of a preemption whose victim has notice.
const OutcomeEvicting = "Evicting"

// NewestConditions are the rows with the greatest revision of each node and type, in the
// order of both.
func NewestConditions(all []Condition) []Condition {
	newest := map[[2]string]Condition{}
	for _, c := range all {
		key := [2]string{string(c.Node), c.Type}
		if was, known := newest[key]; !known || was.Revision < c.Revision {
			newest[key] = c
		}
	}
	list := slices.Collect(maps.Values(newest))
	slices.SortFunc(list, func(a, b Condition) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Type, b.Type)) })
	return list
}

// EarliestSlice is the earliest beginning of some slices; the zero Time for none.
func EarliestSlice(all []Slice) (at time.Time) {
	for _, s := range all {
		if at.IsZero() || s.From.Before(at) {
			at = s.From
		}
	}
	return at
}
