package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/grant"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/programs"
)

// state is all there is to judge at one moment.
type state struct {
	revision resource.Revision
	newest   resource.Revision // the last change of what is there: a witness is sure to see it
	records  map[resource.TxID]record.Tx
	units    map[string]record.Unit // by path
	order    map[resource.UnitUID]bool
	grants   map[string]*schedulerv1.ResourceSnapshot // by node
}

// Audit is called when all faults have been healed and the load has stopped. It
// waits until nothing is under way any more (I13), and then holds what there is
// against what clients were told (I3, I4): what was acknowledged and not ended
// by its client is there, with the devices it had; what was ended or refused is
// not. The witness has checked the rest all along.
func (c *Cluster) Audit(operations []Operation) {
	c.t.Helper()
	c.AwaitReady()
	var s *state
	programs.Eventually(c.t, Patience, "everything settles (I13)", func() error {
		var err error
		if s, err = c.look(); err != nil {
			return err
		}
		if problems := s.unsettled(); len(problems) > 0 {
			return fmt.Errorf("at revision %d: %s", s.revision, strings.Join(problems[:min(len(problems), 5)], "; "))
		}
		return nil
	})
	problems := s.judge(operations)
	for _, p := range problems[:min(len(problems), worst)] {
		c.t.Error(p)
	}
	if c.Witness == nil {
		return
	}
	programs.Eventually(c.t, Patience, "the witness has seen everything", func() error {
		c.Witness.mu.Lock()
		defer c.Witness.mu.Unlock()
		if c.Witness.revision < s.newest {
			return fmt.Errorf("it is at revision %d of %d", c.Witness.revision, s.newest)
		}
		return nil
	})
	for _, p := range c.Witness.Problems() {
		c.t.Error(p)
	}
	if c.t.Failed() {
		c.t.FailNow()
	}
}

// look reads the store at one revision and then every agent.
func (c *Cluster) look() (*state, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	kvs, revision, err := c.Store.Range(ctx, record.Root, store.RangeOptions{})
	if err != nil {
		return nil, err
	}
	s := &state{
		revision: revision, records: map[resource.TxID]record.Tx{}, units: map[string]record.Unit{},
		order: map[resource.UnitUID]bool{}, grants: map[string]*schedulerv1.ResourceSnapshot{},
	}
	for _, kv := range kvs {
		s.newest = max(s.newest, kv.ModRev)
		if err := s.take(kv); err != nil {
			return nil, err
		}
	}
	for _, a := range c.Agents {
		if s.grants[string(a.Node)], err = c.snapshot(ctx, a); err != nil {
			return nil, fmt.Errorf("%s: %w", a.Node, err)
		}
	}
	return s, nil
}

func (s *state) take(kv record.KV) error {
	switch {
	case strings.HasPrefix(kv.Key, record.TxPrefix):
		tx, err := record.ParseTxKey(kv.Key)
		if err != nil {
			return err
		}
		s.records[tx], err = record.Decode[record.Tx](kv.Key, kv.Value)
		return err
	case strings.HasPrefix(kv.Key, record.UnitsPrefix):
		u, err := record.Decode[record.Unit](kv.Key, kv.Value)
		s.units[strings.TrimPrefix(kv.Key, record.UnitsPrefix)] = u
		return err
	case strings.HasPrefix(kv.Key, record.OrderPrefix):
		o, err := record.Decode[record.Order](kv.Key, kv.Value)
		s.order[o.UnitUID] = true
		return err
	}
	return nil
}

// snapshot asks an agent what it holds.
func (c *Cluster) snapshot(ctx context.Context, a *Agent) (*schedulerv1.ResourceSnapshot, error) {
	conn, err := grpc.NewClient("passthrough:///"+a.Address(AgentPort), c.asOperator(a.Node)...)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return schedulerv1.NewNodeAgentClient(conn).GetResourceSnapshot(ctx, &schedulerv1.SnapshotRequest{})
}

// holding is what one member of a transaction has on an agent, or should have.
type holding struct {
	tx      resource.TxID
	node    string
	member  int
	devices string
}

// unsettled says what is still under way, or where agents and records differ.
func (s *state) unsettled() []string {
	var problems []string
	want, have := map[holding]bool{}, map[holding]bool{}
	for tx, r := range s.records {
		switch {
		case r.State.Terminal():
		case r.State != grant.RecordCommitted:
			problems = append(problems, fmt.Sprintf("%s (%s) is %s", tx, r.Unit, r.State))
		default:
			for _, m := range r.Members {
				var devices []string
				for _, g := range m.Assignment.GPUs {
					devices = append(devices, g.UUID)
				}
				slices.Sort(devices)
				want[holding{tx, string(m.Node), m.Member, strings.Join(devices, " ")}] = true
			}
		}
	}
	for node, snapshot := range s.grants {
		for _, g := range snapshot.Allocations {
			if g.State != "HELD" {
				problems = append(problems, fmt.Sprintf("%s has %s on %s (store: %q)", g.Transaction, g.State, node, s.records[resource.TxID(g.Transaction)].State))
				continue
			}
			slices.Sort(g.GpuUuids)
			have[holding{resource.TxID(g.Transaction), node, int(g.Member), strings.Join(g.GpuUuids, " ")}] = true
		}
	}
	for h := range want {
		if !have[h] {
			problems = append(problems, fmt.Sprintf("member %d of %s does not hold %s on %s", h.member, h.tx, h.devices, h.node))
		}
	}
	for h := range have {
		if !want[h] {
			problems = append(problems, fmt.Sprintf("%s holds %s for %s, which is %q", h.node, h.devices, h.tx, s.records[h.tx].State))
		}
	}
	slices.Sort(problems)
	return append(problems, s.disagreeing()...)
}

// disagreeing are units that are not what their records and the order say.
func (s *state) disagreeing() []string {
	var problems []string
	for _, path := range slices.Sorted(maps.Keys(s.units)) {
		u := s.units[path]
		live := s.records[u.TxID].State == grant.RecordCommitted
		if running := u.Phase == string(api.Running); running != live {
			problems = append(problems, fmt.Sprintf("unit %s is %s with transaction %q, which is %q", path, u.Phase, u.TxID, s.records[u.TxID].State))
		}
		if waits := u.Phase == string(api.Pending) || u.Phase == string(api.Queued); waits != s.order[u.UID] {
			problems = append(problems, fmt.Sprintf("unit %s is %s; in the order: %t", path, u.Phase, s.order[u.UID]))
		}
	}
	return problems
}

// fate is what clients know of one name.
type fate struct {
	created, deleted Operation
	// looked is a later answer to a read.
	looked []Operation
}

// judge holds what there is against what clients were told.
func (s *state) judge(operations []Operation) []string {
	fates := map[string]*fate{}
	var names []string
	for _, op := range operations {
		name := op.Namespace + "/" + op.Name
		if op.Kind == SetQuota || op.Kind == Evict { // what is evicted is deleted next
			continue
		}
		if fates[name] == nil {
			fates[name] = &fate{}
			names = append(names, name)
		}
		switch f := fates[name]; op.Kind {
		case CreateAllocation, CreateJob:
			f.created = op
		case Delete:
			f.deleted = op
		case Get:
			f.looked = append(f.looked, op)
		}
	}
	live := map[string]record.Tx{} // committed, by namespace and name
	ids := map[string]resource.TxID{}
	for tx, r := range s.records {
		if r.State == grant.RecordCommitted {
			name := r.Unit.Namespace + "/" + r.Unit.Name
			live[name], ids[name] = r, tx
		}
	}
	var problems []string
	for _, name := range names {
		if problem := fates[name].check(ids[name], live[name]); problem != "" {
			problems = append(problems, name+": "+problem)
		}
	}
	return problems
}

// check compares one name's fate with the record that lives, if any.
func (f *fate) check(tx resource.TxID, r record.Tx) string {
	created, deleted := f.created, f.deleted
	switch {
	case created.Outcome == Refused && created.Repeats == 0 && tx != "":
		// Of one that was sent again, an earlier try may come to a leader later.
		return fmt.Sprintf("refused with %d (%s), and yet %s is committed", created.Code, created.Message, tx)
	case deleted.Kind == Delete && deleted.Outcome != Unknown:
		// Refused is 404: gone already. Any other refusal would leave it alive.
		if deleted.Outcome == Refused && deleted.Code != 404 {
			return fmt.Sprintf("its deletion was refused with %d: %s", deleted.Code, deleted.Message)
		}
		// What was not found may be a creation without an answer, and yet to come.
		if tx != "" && (deleted.Outcome == Done || created.Outcome != Unknown) {
			return fmt.Sprintf("deleted, and yet %s is committed", tx)
		}
		// A deletion that was sent again may not find what it has deleted.
		if deleted.Outcome == Refused && deleted.Repeats == 0 && created.Outcome == Done {
			return fmt.Sprintf("I4: acknowledged as %s, and not found when it was to be deleted", created.Phase)
		}
	case deleted.Kind == "" && created.Outcome == Done && created.Phase == api.Running:
		if tx == "" {
			return fmt.Sprintf("I4: acknowledged with %v and never deleted, but not there", created.Devices)
		}
		if created.Kind == CreateAllocation && (tx != created.Transaction || !slices.Equal(devices(r), sorted(created.Devices))) {
			return fmt.Sprintf("I4: acknowledged as %s with %v, now it is %s with %v", created.Transaction, created.Devices, tx, devices(r))
		}
		if created.Kind == CreateJob && len(r.Members) != created.Members {
			return fmt.Sprintf("I3: acknowledged with %d members, now it has %d", created.Members, len(r.Members))
		}
	}
	for _, l := range f.looked {
		if l.Outcome == Refused && created.Outcome == Done {
			return fmt.Sprintf("I4: acknowledged as %s, and then a read was refused with %d: %s", created.Phase, l.Code, l.Message)
		}
		if l.Outcome == Done && created.Transaction != "" && l.Phase == api.Running && l.Transaction != created.Transaction {
			return fmt.Sprintf("acknowledged as %s, and then read as %s", created.Transaction, l.Transaction)
		}
	}
	return ""
}

func devices(r record.Tx) []string {
	var all []string
	for _, m := range r.Members {
		for _, g := range m.Assignment.GPUs {
			all = append(all, string(m.Node)+" "+g.UUID)
		}
	}
	return sorted(all)
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }
