package record

import (
	"errors"
	"fmt"

	"github.com/musterd/muster/resource"
)

// Cluster says to which cluster a store belongs (ClusterKey). The first
// coordinator that starts on the store writes it, and it never changes.
type Cluster struct {
	Name string `json:"name"`
}

func (c Cluster) check() error {
	if c.Name == "" {
		return errors.New("name is empty")
	}
	return nil
}

// Term is a candidacy for the leader's office (TermKey). A restored store has no key with
// the random mark of a lost term.
type Term struct {
	ID string `json:"id"` // of the coordinator
}

func (t Term) check() error {
	if t.ID == "" {
		return errors.New("id is empty")
	}
	return nil
}

// Restored is a restoration of the store from a backup (RestoredKey, LastRestoredKey).
type Restored struct {
	// Mark is random and names the restoration. Agents are in quarantine until they accept
	// the mark.
	Mark string `json:"mark"`
	// Has is the first revision of the restored store known to the witness. Had is the
	// highest revision known to the witness from before, which may be lower.
	Has resource.Revision `json:"has"`
	Had resource.Revision `json:"had,omitempty"`
	By  string            `json:"by"`            // the witness: "coordinator c1", "node gpu-01"
	Why string            `json:"why,omitempty"` // the contradiction, for people
}

func (r Restored) check() error {
	switch {
	case r.Mark == "":
		return errors.New("mark is empty")
	case r.Has < 1 || r.Had < 0:
		return fmt.Errorf("has %d or had %d is no revision", r.Has, r.Had)
	case r.By == "":
		return errors.New("by is empty")
	}
	return nil
}
