package alone

import (
	"fmt"
	"slices"
	"time"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/coordinator/capture"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Restore starts a Cluster from a snapshot, at the snapshot's time. Its nodes, its work and
// the rules are those of the snapshot; of the options Begun, Decided and the policy of the
// rules count, where they are set. Errors are those of a snapshot that contradicts itself.
func Restore(d *capture.Document, o Options) (*Cluster, error) {
	policy := o.Rules.PlacementPolicy
	if o.Rules = d.Rules; policy != "" {
		o.Rules.PlacementPolicy = policy
	}
	o.Nodes = 0
	c := newCluster(o, d.TakenAt)
	c.store.at = d.Revision
	for _, k := range d.Keys {
		c.store.byID[k.Key] = record.KV{Key: k.Key, Value: k.Value, CreateRev: k.Created, ModRev: k.Modified}
	}
	c.store.commit(nil, []record.Op{record.Put(leaderKey, nil)})
	records, err := recordsByNode(d)
	if err != nil {
		return nil, err
	}
	for i := range d.Nodes {
		if err := c.restoreAgent(d, &d.Nodes[i], records[d.Nodes[i].ID]); err != nil {
			return nil, fmt.Errorf("node %s: %w", d.Nodes[i].ID, err)
		}
	}
	c.epoch = max(d.Epoch, resource.Epoch(c.store.at)-1)
	loaded := d.Loaded()
	return c, c.lead(&loaded, func() {
		for i := range d.Nodes {
			n := &d.Nodes[i]
			if n.Suspected {
				c.inputs = append(c.inputs, lead.NodeSuspected{Node: n.ID, Suspected: true})
			}
			if n.Agent != nil && n.Agent.LastUntil.After(d.TakenAt) {
				c.inputs = append(c.inputs, lead.NodeThrottled{Node: n.ID, Until: n.Agent.LastUntil})
			}
		}
	})
}

// restoreAgent starts the agent of a node with the grants of its records.
func (c *Cluster) restoreAgent(d *capture.Document, n *capture.Node, records []ledger.Record) error {
	if n.Agent == nil || n.Agent.Quarantine != "" {
		return nil // nothing starts there
	}
	host := d.Host(n.Agent)
	f, err := fit.NewHost(host.Topology, host.Inventory, fit.Reserved{CPUs: host.ReservedCPUs, Memory: host.ReservedMemory})
	if err == nil {
		f, err = f.WithCounts(grant.AmountsOf(host.Counts))
	}
	if err != nil {
		return err
	}
	a := &Agent{node: n.ID, host: host, fit: f, ledger: ledger.New(f)}
	if n.Agent.DiskFull {
		a.ledger.SetDiskFull("the snapshot says so")
	}
	if n.Agent.MemoryPressure {
		a.ledger.SetMemoryPressure("the snapshot says so")
	}
	a.decide(ledger.Start{Incarnation: n.Agent.Incarnation}, c.now)
	for _, h := range n.Agent.Health {
		a.decide(ledger.SetHealth{Device: h.Device, Health: h.Health, Reason: h.Reason}, c.now)
	}
	if n.Agent.Revision > 0 {
		a.decide(ledger.Registered{Revision: n.Agent.Revision, Records: records}, c.now)
		a.decide(ledger.Observed{Busy: n.Agent.Busy}, c.now)
	}
	c.agents[n.ID] = a
	return nil
}

// recordsByNode are the records of live transactions, for each node the part that its
// agent holds.
func recordsByNode(d *capture.Document) (map[resource.NodeID][]ledger.Record, error) {
	found := map[resource.NodeID][]ledger.Record{}
	for _, kv := range d.Below(record.TxPrefix) {
		tx, err := record.ParseTxKey(kv.Key)
		if err != nil {
			return nil, err
		}
		r, err := record.Decode[record.Tx](kv.Key, kv.Value)
		if err != nil {
			return nil, err
		}
		if r.State.Terminal() {
			continue
		}
		parts := map[resource.NodeID]*ledger.Record{}
		var nodes []resource.NodeID
		for _, m := range r.Members {
			if parts[m.Node] == nil {
				parts[m.Node] = &ledger.Record{
					Tx: tx, Unit: r.UnitUID, Epoch: r.Epoch, State: r.State, Grace: time.Duration(r.GraceSeconds) * time.Second,
					Revision: kv.ModRev, Name: r.Unit.String(), Tenant: r.Tenant, UnitMembers: len(r.Members) + len(r.LostMembers),
				}
				nodes = append(nodes, m.Node)
			}
			parts[m.Node].Members = append(parts[m.Node].Members, ledger.Holding{Index: m.Member, Assignment: m.Assignment})
		}
		for _, n := range nodes {
			p := parts[n]
			slices.SortFunc(p.Members, func(a, b ledger.Holding) int { return a.Index - b.Index })
			found[n] = append(found[n], *p)
		}
	}
	return found, nil
}

// Capture is a snapshot of the cluster as it is now.
func (c *Cluster) Capture() (*capture.Document, error) {
	state, status := c.Ask(lead.CaptureState{})
	if status != nil {
		return nil, status
	}
	var keys []record.KV
	for _, prefix := range capture.Prefixes() {
		keys = append(keys, c.store.below(prefix)...)
	}
	return capture.New("alone", state.(*lead.Captured), c.store.at, keys)
}
