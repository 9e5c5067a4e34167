package invariant

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file is I4 for what clients were told, once nothing is under way any more.

// Outcome is what a client learned of one request.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"
	Refused Outcome = "refused" // and so it did not and will not happen, unless it was sent again
	Unknown Outcome = "unknown" // it may have happened, or may yet
)

// Answer is one request, with all its repetitions, as its client saw it.
type Answer struct {
	Outcome Outcome
	Repeats int    // how often it was sent again for want of an answer
	Code    int    // of a refusal
	Message string // of a refusal
	Phase   api.Phase
	// Tx and Devices ("node uuid") are of an allocation that runs.
	Tx      resource.TxID
	Devices []string
	// Members is how many members a job that runs has; 0 for an allocation.
	Members int
}

// Fate is what clients know of one name.
type Fate struct {
	Namespace, Name string
	Created         Answer
	Deleted         *Answer  // nil where nobody has asked for it
	Read            []Answer // later answers to reads
}

// Judge holds what there is against what clients were told: what was
// acknowledged and not ended by its client is there, with the devices that it
// had; what was ended or refused is not.
func (c *Checker) Judge(fates []Fate) []Violation {
	running := map[string]resource.TxID{}
	for tx, r := range c.live() {
		if r.State == grant.RecordCommitted {
			running[r.Unit.Namespace+"/"+r.Unit.Name] = tx
		}
	}
	for _, f := range fates {
		name := f.Namespace + "/" + f.Name
		tx := running[name]
		if problem := f.check(tx, c.state.records[tx]); problem != "" {
			c.report(of(I4History, name, string(tx)), "%s: %s", name, problem)
		}
	}
	return c.taken()
}

// check compares one name's fate with the record that lives, if any.
func (f Fate) check(tx resource.TxID, r record.Tx) string {
	created := f.Created
	switch {
	case created.Outcome == Refused && created.Repeats == 0 && tx != "":
		// Of one that was sent again, an earlier try may come to a leader later.
		return fmt.Sprintf("refused with %d (%s), and yet %s is committed", created.Code, created.Message, tx)
	case f.Deleted != nil && f.Deleted.Outcome != Unknown:
		if problem := f.checkDeleted(tx); problem != "" {
			return problem
		}
	case f.Deleted == nil && created.Outcome == Done && created.Phase == api.Running:
		if problem := created.checkThere(tx, r); problem != "" {
			return problem
		}
	}
	for _, read := range f.Read {
		if read.Outcome == Refused && created.Outcome == Done {
			return fmt.Sprintf("acknowledged as %s, and then a read was refused with %d: %s", created.Phase, read.Code, read.Message)
		}
		if read.Outcome == Done && created.Tx != "" && read.Phase == api.Running && read.Tx != created.Tx {
			return fmt.Sprintf("acknowledged as %s, and then read as %s", created.Tx, read.Tx)
		}
	}
	return ""
}

// checkDeleted is for a name whose deletion was answered.
func (f Fate) checkDeleted(tx resource.TxID) string {
	created, deleted := f.Created, *f.Deleted
	switch {
	case deleted.Outcome == Refused && deleted.Code != http.StatusNotFound:
		// Refused is 404: gone already. Any other refusal would leave it alive.
		return fmt.Sprintf("its deletion was refused with %d: %s", deleted.Code, deleted.Message)
	case tx != "" && (deleted.Outcome == Done || created.Outcome != Unknown):
		// What was not found may be a creation without an answer, and yet to come.
		return fmt.Sprintf("deleted, and yet %s is committed", tx)
	case deleted.Outcome == Refused && deleted.Repeats == 0 && created.Outcome == Done:
		// A deletion that was sent again may not find what it has deleted.
		return fmt.Sprintf("acknowledged as %s, and not found when it was to be deleted", created.Phase)
	}
	return ""
}

// checkThere is for what runs, as its client was told, and was never deleted.
func (a Answer) checkThere(tx resource.TxID, r record.Tx) string {
	has := placesOf(r)
	switch {
	case tx == "":
		return fmt.Sprintf("acknowledged with %v and never deleted, but not there", a.Devices)
	case a.Members == 0 && (tx != a.Tx || !slices.Equal(has, slices.Sorted(slices.Values(a.Devices)))):
		return fmt.Sprintf("acknowledged as %s with %v, now it is %s with %v", a.Tx, a.Devices, tx, has)
	case a.Members > 0 && len(r.Members) != a.Members:
		return fmt.Sprintf("acknowledged with %d members, now it has %d", a.Members, len(r.Members))
	}
	return ""
}

// placesOf are the devices of a record, as "node uuid", ascending.
func placesOf(r record.Tx) []string {
	var all []string
	for _, m := range r.Members {
		for _, g := range m.Assignment.GPUs {
			all = append(all, string(m.Node)+" "+g.UUID)
		}
	}
	slices.Sort(all)
	return all
}
