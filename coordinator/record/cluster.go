package record

import (
	"errors"
	"fmt"

	"github.com/musterd/muster/level"
	"github.com/musterd/muster/resource"
)

// Cluster is the cluster to which a store belongs (ClusterKey). The first coordinator that
// starts on the store writes the name, which never changes.
type Cluster struct {
	Name string `json:"name"`
	// Level is the feature level of the keys in the store, 0 before the first raise.
	// Coordinators of a lower level neither lead nor write.
	Level level.Level `json:"level,omitempty"`
}

func (c Cluster) check() error {
	if c.Name == "" {
		return errors.New("name is empty")
	}
	if c.Level < 0 {
		return fmt.Errorf("level %d is negative", c.Level)
	}
	return nil
}

// KnownLevel is the newest feature level of a program. Level 0 has no key.
type KnownLevel struct {
	Level level.Level `json:"level"`
	// Registered is the time of the node's registration behind the key, as in
	// NodeSpec.Registrations: the key ends with the next registration. Empty for a
	// coordinator.
	Registered string `json:"registered,omitempty"`
}

func (k KnownLevel) check() error {
	if k.Level < 1 {
		return fmt.Errorf("level %d: want 1 or more", k.Level)
	}
	return nil
}

// Raise is a raise of the feature level before its Txn (RaiseKey): no agent registers
// until the key is gone.
type Raise struct {
	To level.Level `json:"to"`
	By string      `json:"by,omitempty"`
}

func (r Raise) check() error {
	if r.To < 1 {
		return fmt.Errorf("to %d: want 1 or more", r.To)
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
