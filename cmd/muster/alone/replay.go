package alone

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/capture"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Work is a submission to a replay: exactly one of Allocation and Job is set.
type Work struct {
	Namespace  string // "" is default
	Document   []byte // as it was submitted
	Allocation *api.Allocation
	Job        *api.Job
}

// Replayed is the outcome of a replay under one policy.
type Replayed struct {
	Policy string `json:"policy"` // of queues that have none of their own; "" as in the snapshot
	// Running and Waiting count units at the end, GPUs and Used devices in milli.
	Running int            `json:"running"`
	Waiting int            `json:"waiting"`
	GPUs    resource.Milli `json:"gpuMilli"`
	Used    resource.Milli `json:"usedGPUMilli"`
	Evicted int            `json:"evicted"`
	// Decisions are all decisions, in order; Refused the refusals of submissions.
	Decisions []Decision `json:"decisions"`
	Refused   []string   `json:"refused,omitempty"`
}

// Replay has a leader go on from a snapshot under a policy, "" for that of the snapshot:
// it submits work, in order, and lets time pass. The same values give the same outcome. An
// error means a snapshot that contradicts itself: the leader and the agents take the
// content of a store for whole, so some contradictions come out as their panics.
func Replay(d *capture.Document, policy string, work []Work, wait time.Duration) (r *Replayed, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			r, err = nil, fmt.Errorf("the snapshot contradicts itself, take it anew with muster snapshot: %v", fault)
		}
	}()
	r = &Replayed{Policy: policy, Decisions: []Decision{}}
	o := Options{Rules: lead.Rules{PlacementPolicy: policy}, Decided: func(line string) {
		var one Decision
		must(json.Unmarshal([]byte(line), &one))
		r.Decisions = append(r.Decisions, one)
		if one.State == grant.RecordEvicting.String() {
			r.Evicted++
		}
	}}
	c, err := Restore(d, o)
	if err != nil {
		return nil, err
	}
	for _, w := range work {
		if status := c.submit(w); status != nil {
			r.Refused = append(r.Refused, status.Message)
		}
	}
	for end := c.now.Add(wait); c.now.Before(end); {
		c.AdvanceTo(c.now.Add(min(time.Second, end.Sub(c.now))))
	}
	return r, r.count(c, d)
}

func (c *Cluster) submit(w Work) *api.Status {
	submitted := lead.Submitted{Namespace: cmp.Or(w.Namespace, "default"), Document: w.Document}
	var request lead.Request = lead.CreateAllocation{Submitted: submitted, Document: w.Allocation}
	if w.Job != nil {
		request = lead.CreateJob{Submitted: submitted, Document: w.Job}
	}
	_, status := c.Ask(request)
	return status
}

// count counts the units and the devices at the end.
func (r *Replayed) count(c *Cluster, d *capture.Document) error {
	for _, n := range d.Nodes {
		if n.Agent != nil {
			r.GPUs += resource.Milli(len(n.Agent.Inventory.Devices)) * resource.WholeDevice
		}
	}
	r.Waiting = len(c.Keys(record.OrderPrefix))
	for _, kv := range c.Keys(record.TxPrefix) {
		tx, err := record.Decode[record.Tx](kv.Key, kv.Value)
		if err != nil {
			return err
		}
		if tx.State.Terminal() {
			continue
		}
		r.Running++
		for _, m := range tx.Members {
			for _, g := range m.Assignment.GPUs {
				r.Used += g.Milli
			}
		}
	}
	return nil
}

// String is the decision as one line for people.
func (d Decision) String() string {
	var on []string
	for _, m := range d.Members {
		var gpus []string
		for _, g := range m.Assignment.GPUs {
			gpus = append(gpus, fmt.Sprint(g.Index))
		}
		at := string(m.Node)
		if len(gpus) > 0 {
			at += " GPU " + strings.Join(gpus, ",")
		}
		on = append(on, at)
	}
	text := fmt.Sprintf("%s: %s on %s", d.Unit, strings.ToLower(d.State), strings.Join(on, "; "))
	if d.For != "" {
		text += ", for " + d.For
	}
	return text
}
