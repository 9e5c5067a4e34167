package rig

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/invariant"
)

// Converge waits until the cluster is at rest and everything agrees: records,
// units, order and index in the store, grants at the agents, and what the
// leader shows. It fails the test with what still differs.
func (c *Cluster) Converge() {
	c.t.Helper()
	c.await(func() (string, bool) {
		problems := c.problems()
		return "everything agrees:\n  " + strings.Join(problems, "\n  "), len(problems) == 0
	})
	c.CheckGrants()
}

// CheckGrants checks at each agent that nothing is handed out twice (I1).
func (c *Cluster) CheckGrants() {
	c.t.Helper()
	checker := invariant.New(invariant.Rig())
	for _, a := range c.Agents() {
		if s, up := a.Snapshot(); up {
			for _, v := range checker.Observe(hostOf(s)) {
				c.t.Error(v)
			}
		}
	}
}

// problems lists what does not agree yet.
func (c *Cluster) problems() []string {
	s := c.read()
	s.checkAgents(c)
	s.checkLeader(c)
	slices.Sort(s.problems)
	return s.problems
}

// state is the store at one revision, and what is wrong with it.
type state struct {
	records  map[resource.TxID]record.Tx
	units    []record.Unit
	checker  *invariant.Checker
	problems []string
}

func (s *state) problem(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

func (c *Cluster) read() *state {
	s := &state{records: map[resource.TxID]record.Tx{}, checker: invariant.New(invariant.Rig())}
	kvs, revision, err := c.Store.Range(context.Background(), record.Root, store.RangeOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	batch, failed := invariant.DecodeState(kvs, revision)
	for _, err := range failed {
		c.t.Fatal(err)
	}
	for _, change := range batch.Changes {
		switch change := change.(type) {
		case invariant.Record:
			s.records[change.Tx] = *change.New
		case invariant.Unit:
			s.units = append(s.units, *change.New)
		}
	}
	s.checker.Load(batch)
	return s
}

// hostOf is what the checker is shown of an agent that is up.
func hostOf(s rpc.Snapshot) invariant.Host {
	h := invariant.Host{Node: s.Node, Agent: &invariant.Agent{}}
	for _, d := range s.Devices {
		h.Devices = append(h.Devices, d.UUID)
	}
	for _, m := range s.Grants {
		grants := &h.Agent.Grants
		if n := len(*grants); n == 0 || (*grants)[n-1].Tx != m.Tx {
			*grants = append(*grants, grantOf(m))
		}
		g := &(*grants)[len(*grants)-1]
		g.Members = append(g.Members, ledger.Holding{Index: m.Member, Assignment: m.Assignment})
		if uuid, orphan := ledger.OrphanUUID(m.Tx); orphan {
			h.Devices = append(h.Devices, uuid) // whether its card is there or not
		}
	}
	return h
}

// grantOf reads the state of a grant as an agent shows it.
func grantOf(m rpc.GrantMember) ledger.Grant {
	g := ledger.Grant{Tx: m.Tx, Unit: m.Unit}
	for state := grant.None; state <= grant.Tombstone; state++ {
		if state.String() == m.State {
			g.State = state
		}
	}
	if _, orphan := ledger.OrphanUUID(m.Tx); orphan {
		g.Origin, g.State = ledger.OriginOrphan, grant.Held
	}
	return g
}

// checkAgents compares the store with the grants of the agents, and the grants
// with what launchers see.
func (s *state) checkAgents(c *Cluster) {
	for _, a := range c.Agents() {
		snapshot, up := a.Snapshot()
		if !up {
			s.checker.Observe(invariant.Host{Node: a.Node})
			continue
		}
		s.report(s.checker.Observe(hostOf(snapshot)))
		held := map[string]resource.Assignment{}
		for _, g := range snapshot.Grants {
			if g.State != "TOMBSTONE" {
				held[fmt.Sprintf("%s/%d", g.Tx, g.Member)] = g.Assignment
			}
		}
		s.checkFolder(a, held)
	}
	s.report(s.checker.Quiet())
}

func (s *state) report(violations []invariant.Violation) {
	for _, v := range violations {
		s.problem("%s", v)
	}
}

// checkLeader compares what the leader shows with the store.
func (s *state) checkLeader(c *Cluster) {
	k := c.Leader()
	list, err := k.ListAllocations(context.Background(), "", service.Page[api.Allocation]{})
	if err != nil {
		s.problem("list allocations: %v", err)
		return
	}
	shown := map[string]string{}
	for _, a := range list.Items {
		shown[a.Metadata.Namespace+"/"+a.Metadata.Name] = string(a.Status.Phase)
		for _, condition := range a.Status.Conditions {
			if condition.Type == "Ready" && condition.Status != "True" {
				s.problem("allocation %s is not Ready: %s", a.Metadata.Name, condition.Reason)
			}
		}
	}
	want := map[string]string{}
	for _, u := range s.units {
		for i := range u.Members {
			name := u.Name
			if u.Kind == record.JobUnit {
				name = fmt.Sprintf("%s-%d", u.Name, u.FirstMember+i)
			}
			want[u.Namespace+"/"+name] = u.Phase
		}
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		s.problem("the leader shows (-store +shown):\n%s", diff)
	}
	s.checkFree(c, k)
	s.checkQuotas(k)
}

// charged is where a record is charged.
type charged struct{ tree, group string }

// checkQuotas compares what the leader says is used of quotas with the sum of
// the records.
func (s *state) checkQuotas(k *Coordinator) {
	used := map[charged]resource.Vector{}
	for _, r := range s.records {
		if !r.State.Charged() {
			continue
		}
		for _, c := range r.Charges {
			for _, at := range []charged{{c.Tree, c.Group}, {tree: c.Tree}} { // "" is all of a tree
				if used[at] == nil {
					used[at] = resource.Vector{}
				}
				used[at].Add(c.Request)
			}
		}
	}
	trees, err := k.ListQuotaTrees(context.Background())
	if err != nil {
		s.problem("list quota trees: %v", err)
		return
	}
	for _, t := range trees.Items {
		if len(t.Status.Nodes) == 0 {
			continue
		}
		for name, shown := range t.Status.Nodes[0].Allocated {
			if want := resource.FormatAmount(name, used[charged{tree: t.Metadata.Name}][name]); shown != want {
				s.problem("tree %s is charged %s of %s, its records sum to %s", t.Metadata.Name, shown, name, want)
			}
		}
	}
	quotas, err := k.ListResourceQuotas(context.Background(), "")
	if err != nil {
		s.problem("list resource quotas: %v", err)
		return
	}
	for _, q := range quotas.Items {
		if len(q.Spec.Scopes) > 0 || q.Spec.ScopeSelector != nil {
			continue
		}
		for name, shown := range q.Status.Used {
			want := resource.FormatAmount(name, used[charged{quota.Tree, q.Metadata.Namespace}][name])
			if name != resource.Pods && shown != want {
				s.problem("resource quota %s/%s counts %s of %s, the records sum to %s", q.Metadata.Namespace, q.Metadata.Name, shown, name, want)
			}
		}
	}
}

// checkFree compares what the leader believes free with what is.
func (s *state) checkFree(c *Cluster, k *Coordinator) {
	nodes, err := k.ListNodes(context.Background())
	if err != nil {
		s.problem("list nodes: %v", err)
		return
	}
	for _, n := range nodes.Items {
		a := c.Agent(resource.NodeID(n.Metadata.Name))
		if a == nil {
			continue
		}
		snapshot, up := a.Snapshot()
		if !up || n.Status.Phase != "Ready" {
			s.problem("node %s is %s", n.Metadata.Name, n.Status.Phase)
			continue
		}
		if want := api.Amounts(snapshot.Available); !maps.Equal(want, n.Status.Available) {
			s.problem("the leader believes %v free on %s, the agent has %v", n.Status.Available, n.Metadata.Name, want)
		}
	}
}
