package rig

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
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
	for _, a := range c.Agents() {
		s, up := a.Snapshot()
		if !up {
			continue
		}
		gpus, cpus := map[string]resource.Milli{}, map[int]resource.Millicores{}
		for _, g := range s.Grants {
			if g.State == "TOMBSTONE" || g.State == "WAITING" { // WAITING overlays what others hold
				continue
			}
			for _, d := range g.Assignment.GPUs {
				if gpus[d.UUID] += d.Milli; gpus[d.UUID] > resource.WholeDevice {
					c.t.Errorf("I1: %s hands out %d milli of %s", a.Node, gpus[d.UUID], d.UUID)
				}
			}
			for _, p := range g.Assignment.CPUs {
				if cpus[p.ID] += p.Milli; cpus[p.ID] > resource.WholeCPU {
					c.t.Errorf("I1: %s hands out %d millicores of CPU %d", a.Node, cpus[p.ID], p.ID)
				}
			}
		}
	}
}

// problems lists what does not agree yet.
func (c *Cluster) problems() []string {
	s := c.read()
	s.checkUnits()
	s.checkAgents(c)
	s.checkLeader(c)
	slices.Sort(s.problems)
	return s.problems
}

// state is the store at one revision, and what is wrong with it.
type state struct {
	records  map[resource.TxID]record.Tx
	units    map[string]record.Unit
	orders   map[string]bool // by unit path
	jobs     map[string]record.Job
	index    map[string]bool // node/tx
	problems []string
}

func (s *state) problem(format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

func (c *Cluster) read() *state {
	s := &state{
		records: map[resource.TxID]record.Tx{}, units: map[string]record.Unit{}, orders: map[string]bool{},
		jobs: map[string]record.Job{}, index: map[string]bool{},
	}
	kvs, _, err := c.Store.Range(context.Background(), record.Root, store.RangeOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, kv := range kvs {
		if err := s.take(kv); err != nil {
			c.t.Fatal(err)
		}
	}
	return s
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
		s.units[u.Path().String()] = u
		return err
	case strings.HasPrefix(kv.Key, record.OrderPrefix):
		key, err := record.ParseOrderKey(kv.Key)
		if s.orders[key.Unit.String()] {
			s.problem("unit %s is twice in the order", key.Unit)
		}
		s.orders[key.Unit.String()] = true
		return err
	case strings.HasPrefix(kv.Key, record.JobsPrefix):
		j, err := record.Decode[record.Job](kv.Key, kv.Value)
		s.jobs[j.Namespace+"/"+j.Name] = j
		return err
	case strings.HasPrefix(kv.Key, record.NodesPrefix):
		key, err := record.ParseNodeKey(kv.Key)
		if key.Part == record.NodeTxPart {
			s.index[string(key.ID)+"/"+string(key.Tx)] = true
		}
		return err
	}
	return nil
}

// checkUnits compares units with records, order and index.
func (s *state) checkUnits() {
	for path, u := range s.units {
		switch phase := api.Phase(u.Phase); {
		case phase == api.Pending && (!s.orders[path] || u.TxID != ""):
			s.problem("unit %s is Pending: in the order %t, transaction %q", path, s.orders[path], u.TxID)
		case phase == api.Running && s.records[u.TxID].State != grant.RecordCommitted:
			s.problem("unit %s is Running in %s, which is %q", path, u.TxID, s.records[u.TxID].State)
		case phase == api.Terminating:
			s.problem("unit %s is still Terminating", path)
		case phase != api.Pending && s.orders[path]:
			s.problem("unit %s is %s and in the order", path, phase)
		}
	}
	for path := range s.orders {
		if _, ok := s.units[path]; !ok {
			s.problem("the order names %s, which does not exist", path)
		}
	}
	for tx, r := range s.records {
		for _, m := range r.Members {
			if at := string(m.Node) + "/" + string(tx); s.index[at] != r.State.Charged() {
				s.problem("record %s is %s, index %s is there: %t", tx, r.State, at, s.index[at])
			}
		}
		if r.State.Charged() && s.units[r.Unit.String()].TxID != tx {
			s.problem("record %s is %s, its unit %s names %q", tx, r.State, r.Unit, s.units[r.Unit.String()].TxID)
		}
	}
	for key, j := range s.jobs {
		if j.Cancelled != nil && !api.Phase(j.Phase).Ended() {
			s.problem("job %s is cancelled and %s", key, j.Phase)
		}
	}
}

// checkAgents compares records with grants, both ways (I3, I13).
func (s *state) checkAgents(c *Cluster) {
	for _, a := range c.Agents() {
		snapshot, up := a.Snapshot()
		if !up {
			s.problem("agent %s is down", a.Node)
			continue
		}
		held := map[string]resource.Assignment{}
		for _, g := range snapshot.Grants {
			if g.State == "TOMBSTONE" {
				continue
			}
			if !g.Held {
				s.problem("agent %s has %s member %d in %s", a.Node, g.Tx, g.Member, g.State)
			}
			held[fmt.Sprintf("%s/%d", g.Tx, g.Member)] = g.Assignment
		}
		want := map[string]resource.Assignment{}
		for tx, r := range s.records {
			for _, m := range r.Members {
				if m.Node == a.Node && r.State.Charged() {
					want[fmt.Sprintf("%s/%d", tx, m.Member)] = m.Assignment
				}
			}
		}
		if diff := cmp.Diff(want, held, cmpopts.EquateEmpty()); diff != "" {
			s.problem("I3, I13: agent %s (-records +grants):\n%s", a.Node, diff)
		}
		s.checkFolder(a, held)
	}
}

// checkLeader compares what the leader shows with the store.
func (s *state) checkLeader(c *Cluster) {
	k := c.Leader()
	list, err := k.ListAllocations(context.Background(), "", rest.Page[api.Allocation]{})
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

// checkQuotas compares what the leader says is used of quotas with the sum of
// the records.
func (s *state) checkQuotas(k *Coordinator) {
	used := map[group]resource.Vector{}
	for _, r := range s.records {
		if !r.State.Charged() {
			continue
		}
		for _, c := range r.Charges {
			for _, at := range []group{{c.Tree, c.Group}, {tree: c.Tree}} { // "" is all of a tree
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
			if want := resource.FormatAmount(name, used[group{tree: t.Metadata.Name}][name]); shown != want {
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
			want := resource.FormatAmount(name, used[group{quota.Tree, q.Metadata.Namespace}][name])
			if name != api.Pods && shown != want {
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
