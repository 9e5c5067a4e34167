package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/grant"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/invariant"
	"github.com/musterd/muster/test/programs"
)

// state is all there is to judge at one moment.
type state struct {
	newest  resource.Revision // the last change of what is there: a witness is sure to see it
	units   []record.Unit
	grants  map[string]*schedulerv1.ResourceSnapshot // by node
	checker *invariant.Checker
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
			return fmt.Errorf("%s", strings.Join(problems[:min(len(problems), 5)], "; "))
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
		if at := c.Witness.Revision(); at < s.newest {
			return fmt.Errorf("it is at revision %d of %d", at, s.newest)
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
	batch, failed := invariant.DecodeState(kvs, revision)
	if len(failed) > 0 {
		return nil, failed[0]
	}
	s := newState(batch)
	for _, kv := range kvs {
		s.newest = max(s.newest, kv.ModRev)
	}
	for _, a := range c.Agents {
		if s.grants[string(a.Node)], err = c.snapshot(ctx, a); err != nil {
			return nil, fmt.Errorf("%s: %w", a.Node, err)
		}
	}
	return s, nil
}

func newState(b invariant.Batch) *state {
	s := &state{grants: map[string]*schedulerv1.ResourceSnapshot{}, checker: invariant.New(invariant.Cluster())}
	for _, change := range b.Changes {
		if u, is := change.(invariant.Unit); is {
			s.units = append(s.units, *u.New)
		}
	}
	s.checker.Load(b)
	return s
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

// unsettled says what is still under way, or where agents and records differ.
func (s *state) unsettled() []string {
	var problems []string
	for _, node := range slices.Sorted(maps.Keys(s.grants)) {
		problems = append(problems, texts(s.checker.Observe(hostOf(node, s.grants[node])))...)
	}
	return append(problems, texts(s.checker.Quiet())...)
}

// judge holds what there is against what clients were told.
func (s *state) judge(operations []Operation) []string {
	return texts(s.checker.Judge(fatesOf(operations)))
}

func texts(violations []invariant.Violation) []string {
	var list []string
	for _, v := range violations {
		list = append(list, v.String())
	}
	return list
}

// hostOf is what the checker is shown of an agent. Its answer names the devices
// that are held, not the shares of them.
func hostOf(node string, snapshot *schedulerv1.ResourceSnapshot) invariant.Host {
	h := invariant.Host{Node: resource.NodeID(node), Agent: &invariant.Agent{}}
	for _, a := range snapshot.Allocations {
		g := ledger.Grant{Tx: resource.TxID(a.Transaction)}
		for state := grant.None; state <= grant.Tombstone; state++ {
			if state.String() == a.State {
				g.State = state
			}
		}
		if _, _, pooled := ledger.PooledUUID(g.Tx); pooled {
			g.Origin, g.State = ledger.OriginKubelet, grant.Held
		}
		m := ledger.Holding{Index: int(a.Member)}
		for _, uuid := range a.GpuUuids {
			m.Assignment.GPUs = append(m.Assignment.GPUs, resource.GPUGrant{UUID: uuid, Milli: resource.WholeDevice})
		}
		for _, uuid := range a.MigUuids {
			m.Assignment.MIG = append(m.Assignment.MIG, resource.MIGGrant{UUID: uuid})
		}
		g.Members = []ledger.Holding{m}
		h.Agent.Grants = append(h.Agent.Grants, g)
	}
	return h
}

// fatesOf collects what clients know of each name, in the order of their first
// operations.
func fatesOf(operations []Operation) []invariant.Fate {
	var fates []invariant.Fate
	at := map[string]int{}
	for _, op := range operations {
		if op.Kind == SetQuota || op.Kind == Evict { // what is evicted is deleted next
			continue
		}
		name := op.Namespace + "/" + op.Name
		if _, known := at[name]; !known {
			at[name] = len(fates)
			fates = append(fates, invariant.Fate{Namespace: op.Namespace, Name: op.Name})
		}
		switch f, answer := &fates[at[name]], op.answer(); op.Kind {
		case CreateAllocation, CreateJob:
			f.Created = answer
		case Delete:
			f.Deleted = &answer
		case Get:
			f.Read = append(f.Read, answer)
		}
	}
	return fates
}

// answer is the operation as the checker is told of it.
func (o Operation) answer() invariant.Answer {
	a := invariant.Answer{
		Outcome: o.Outcome, Repeats: o.Repeats, Code: o.Code, Message: o.Message, Phase: o.Phase, Tx: o.Transaction, Devices: o.Devices,
	}
	if o.Kind == CreateJob {
		a.Members = o.Members
	}
	return a
}
