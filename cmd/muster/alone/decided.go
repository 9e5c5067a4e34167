package alone

import (
	"encoding/json"
	"strings"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file tells the decisions of the leader as lines: each state of each transaction as
// the store gets it, with the unit's path in place of identifiers that a leader draws.

// Decision is one line.
type Decision struct {
	Unit  string `json:"unit"` // path: namespace/alloc or job/name/number
	State string `json:"state"`
	// For is the unit that an evicted one makes room for.
	For        string             `json:"for,omitempty"`
	Members    []record.Placement `json:"members,omitempty"`
	Charges    []record.Charge    `json:"charges,omitempty"`
	Form       int                `json:"alternative,omitempty"`
	Reason     string             `json:"reason,omitempty"`
	GraceAfter int64              `json:"graceSeconds,omitempty"`
}

// noteDecisions reports the decisions that a write has.
func (c *Cluster) noteDecisions(ops []record.Op) {
	if c.options.Decided == nil {
		return
	}
	for _, o := range ops {
		if o.Delete || !strings.HasPrefix(o.Key, record.TxPrefix) {
			continue
		}
		r, err := record.Decode[record.Tx](o.Key, o.Value)
		must(err)
		if r.State == grant.RecordAborted { // an attempt came to nothing; its unit still waits
			continue
		}
		line, err := json.Marshal(Decision{
			Unit: r.Unit.String(), State: r.State.String(), For: c.unitOf(r.By), Members: r.Members, Charges: r.Charges, Form: r.Alternative, Reason: c.named(r.Reason), GraceAfter: r.GraceSeconds,
		})
		must(err)
		c.options.Decided(string(line))
	}
}

// unitOf is the path of the unit of a transaction, "" where there is none.
func (c *Cluster) unitOf(tx resource.TxID) string {
	if path, begun := c.paths[tx]; begun || tx == "" {
		return path
	}
	kv, found := c.store.byID[record.TxKey(tx)]
	if !found {
		return ""
	}
	r, err := record.Decode[record.Tx](kv.Key, kv.Value)
	must(err)
	return r.Unit.String()
}

// named is a reason with the paths of units in place of transactions.
func (c *Cluster) named(reason string) string {
	words := strings.Split(reason, " ")
	for i, w := range words {
		if path := c.unitOf(resource.TxID(w)); path != "" && strings.Contains(w, ".") {
			words[i] = path
		}
	}
	return strings.Join(words, " ")
}
