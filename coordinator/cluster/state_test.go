package cluster_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// hostOf makes a host of a profile.
func hostOf(tb interface{ Fatal(...any) }, profile string) *fit.Host {
	p, err := fake.Lookup(profile)
	if err != nil {
		tb.Fatal(err)
	}
	host, err := fit.NewHost(p.Topology(), p.Inventory(profile), fit.Reserved{})
	if err != nil {
		tb.Fatal(err)
	}
	return host
}

// freeNode is a node of a host of which nothing is taken.
func freeNode(id resource.NodeID, host *fit.Host) *cluster.Node {
	return &cluster.Node{ID: id, Ready: true, Host: host, Free: host.NewFree()}
}

// picture is a copy of all free amounts, which the model compares with.
type picture map[resource.NodeID]*fit.Free

func pictureOf(s *cluster.State) picture {
	p := picture{}
	for _, n := range s.Nodes() {
		p[n.ID] = n.Free.Clone()
	}
	return p
}

// equals reports whether the State has the amounts of the picture, and aggregates
// that agree with them.
func (p picture) equals(t *rapid.T, s *cluster.State) {
	for _, n := range s.Nodes() {
		if !n.Free.Equal(p[n.ID]) {
			t.Fatalf("%s has %v free, want %v", n.ID, n.Host.FreeVector(n.Free), n.Host.FreeVector(p[n.ID]))
		}
		if err := n.Host.Check(n.Free); err != nil {
			t.Fatal(err)
		}
		fresh := *n
		fresh.Refresh()
		if got, want := sums(n), sums(&fresh); got != want {
			t.Fatalf("%s has the aggregates %v, want %v", n.ID, got, want)
		}
	}
}

func sums(n *cluster.Node) [7]int64 {
	return [7]int64{
		int64(n.FreeCPU), int64(n.FreeCores), int64(n.FreeMemory), int64(n.WholeGPUs), int64(n.FreeGPU), int64(n.LargestGPU), int64(n.FreeMIG),
	}
}

// held is an assignment that a node gave.
type held struct {
	node       *cluster.Node
	assignment resource.Assignment
}

func idsOf(nodes []*cluster.Node) []resource.NodeID {
	var ids []resource.NodeID
	for _, n := range nodes {
		ids = append(ids, n.ID)
	}
	return ids
}

// TestStateAgreesWithCopies drives a State by random operations, beside a model that
// copies everything at each checkpoint.
func TestStateAgreesWithCopies(t *testing.T) {
	gpu2, asym := hostOf(t, "gpu2"), hostOf(t, "asym-3131")
	rapid.Check(t, func(t *rapid.T) {
		s := cluster.NewState(freeNode("b", gpu2), freeNode("a", asym), freeNode("c", gpu2))
		s.TakeGrown()
		s.ForgetShrunk()
		type level struct {
			mark          cluster.Mark
			free          picture
			held          []held
			grown, shrunk []resource.NodeID
		}
		var open []level
		var holds []held
		var grown, shrunk []resource.NodeID // by gives and takes that are not undone yet, with repetitions
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				n := rapid.SampledFrom(s.Nodes()).Draw(t, "node")
				var a resource.Assignment
				r := resource.Request{CPU: 1500, GPUs: rapid.IntRange(0, 2).Draw(t, "GPUs")}
				if !n.Host.Assign(n.Free, r, &a) {
					return
				}
				if rapid.Bool().Draw(t, "present") {
					if got := s.TakePresent(n, a); !got.Equal(a) {
						t.Fatalf("took %v of %v, all of it is free", got, a)
					}
				} else if err := s.Take(n, a); err != nil {
					t.Fatal(err)
				}
				holds, shrunk = append(holds, held{n, a}), append(shrunk, n.ID)
			},
			"give": func(t *rapid.T) {
				if len(holds) == 0 {
					return
				}
				i := rapid.IntRange(0, len(holds)-1).Draw(t, "held")
				if err := s.Give(holds[i].node, holds[i].assignment); err != nil {
					t.Fatal(err)
				}
				grown = append(grown, holds[i].node.ID)
				holds = slices.Delete(slices.Clone(holds), i, i+1)
			},
			"take what is not free": func(t *rapid.T) {
				if len(holds) == 0 {
					return
				}
				h := rapid.SampledFrom(holds).Draw(t, "held")
				if len(h.assignment.GPUs) > 0 && s.Take(h.node, h.assignment) == nil {
					t.Fatalf("%v was taken twice", h.assignment)
				}
			},
			"give what is free": func(t *rapid.T) {
				n := rapid.SampledFrom(s.Nodes()).Draw(t, "node")
				if s.Give(n, resource.Assignment{GPUs: []resource.GPUGrant{{Index: 63, Milli: 1}}}) == nil {
					t.Fatal("a device that is not there was given")
				}
			},
			"checkpoint": func(*rapid.T) {
				open = append(open, level{s.Checkpoint(), pictureOf(s), slices.Clone(holds), slices.Clone(grown), slices.Clone(shrunk)})
			},
			"rollback": func(t *rapid.T) {
				if len(open) == 0 {
					return
				}
				last := open[len(open)-1]
				s.Rollback(last.mark)
				last.free.equals(t, s)
				open, holds, grown, shrunk = open[:len(open)-1], last.held, last.grown, last.shrunk
			},
			"keep": func(t *rapid.T) {
				if len(open) == 0 {
					return
				}
				now := pictureOf(s)
				s.Keep(open[len(open)-1].mark)
				now.equals(t, s)
				open = open[:len(open)-1]
			},
			"news": func(t *rapid.T) {
				if len(open) > 0 {
					return
				}
				for verb, news := range map[string]struct{ got, want []resource.NodeID }{"grown": {idsOf(s.TakeGrown()), grown}, "shrunk": {idsOf(s.TakeShrunk()), shrunk}} {
					slices.Sort(news.want)
					if want := slices.Compact(news.want); !slices.Equal(news.got, want) {
						t.Fatalf("%v have %s, want %v", news.got, verb, want)
					}
				}
				grown, shrunk = nil, nil
			},
			"": func(t *rapid.T) { pictureOf(s).equals(t, s) },
		})
	})
}

func TestNodesAscendByID(t *testing.T) {
	host := hostOf(t, "gpu2")
	s := cluster.NewState(freeNode("b", host), freeNode("c", host), freeNode("a", host))
	s.Remove("b")
	s.Remove("never")
	var ids []resource.NodeID
	for _, n := range s.Nodes() {
		ids = append(ids, n.ID)
	}
	if diff := cmp.Diff([]resource.NodeID{"a", "c"}, ids); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if s.Node("b") != nil || s.Node("c") == nil || s.Node("c").ID != "c" {
		t.Errorf("b is %v, c is %v", s.Node("b"), s.Node("c"))
	}
}

func TestMisusePanics(t *testing.T) {
	host := hostOf(t, "gpu2")
	for name, c := range map[string]struct {
		misuse func(s *cluster.State)
		want   string
	}{
		"a second end": {
			func(s *cluster.State) { m := s.Checkpoint(); s.Keep(m); s.Rollback(m) }, "cluster: rollback of checkpoint 1: no checkpoint is open",
		},
		"the outer one first": {
			func(s *cluster.State) { m := s.Checkpoint(); s.Checkpoint(); s.Keep(m) }, "cluster: keep of checkpoint 1: checkpoint 2 was opened last and ends first",
		},
		"a mark of before": {
			func(s *cluster.State) { m := s.Checkpoint(); s.Keep(m); s.Checkpoint(); s.Rollback(m) },
			"cluster: rollback of checkpoint 1: checkpoint 2 was opened last and ends first",
		},
		"a host under a checkpoint": {
			func(s *cluster.State) { s.Checkpoint(); s.Reset(s.Node("a"), host, 0) }, "cluster: reset a: 1 checkpoints are open, and only Take and Give can be undone",
		},
		"an ID twice": {
			func(s *cluster.State) { s.Insert(freeNode("a", host)) }, "cluster: insert a: a node has that ID",
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if diff := cmp.Diff(c.want, fmt.Sprint(recover())); diff != "" {
					t.Errorf("panic (-want +got):\n%s", diff)
				}
			}()
			c.misuse(cluster.NewState(freeNode("a", host)))
		})
	}
}

func TestNodesThatGrow(t *testing.T) {
	host := hostOf(t, "gpu2")
	for name, c := range map[string]struct {
		change func(s *cluster.State, n *cluster.Node)
		want   bool
	}{
		"nothing":                    {func(*cluster.State, *cluster.Node) {}, false},
		"a new host":                 {func(s *cluster.State, n *cluster.Node) { s.Reset(n, host, 0) }, true},
		"it becomes ready":           {func(s *cluster.State, n *cluster.Node) { s.SetReady(n, false); s.TakeGrown(); s.SetReady(n, true) }, true},
		"it stays ready":             {func(s *cluster.State, n *cluster.Node) { s.SetReady(n, true) }, false},
		"it is lost":                 {func(s *cluster.State, n *cluster.Node) { s.SetReady(n, false) }, false},
		"it is cordoned":             {func(s *cluster.State, n *cluster.Node) { s.SetUnschedulable(n, true) }, false},
		"it is uncordoned":           {func(s *cluster.State, n *cluster.Node) { s.SetUnschedulable(n, true); s.SetUnschedulable(n, false) }, true},
		"a device falls sick":        {func(s *cluster.State, n *cluster.Node) { s.SetUnhealthy(n, 1) }, false},
		"one heals, one falls sick":  {func(s *cluster.State, n *cluster.Node) { s.SetUnhealthy(n, 1); s.SetUnhealthy(n, 2) }, true},
		"its labels change":          {func(s *cluster.State, n *cluster.Node) { s.Relabel(n, map[string]string{"a": "b"}, nil) }, true},
		"it is suspect, and tripped": {func(s *cluster.State, n *cluster.Node) { s.SetSuspect(n, true); s.SetTripped(n, true) }, false},
		"a take":                     {func(s *cluster.State, n *cluster.Node) { s.TakePresent(n, core(0)) }, false},
		"a take and a give":          {func(s *cluster.State, n *cluster.Node) { must(s.Take(n, core(0))); must(s.Give(n, core(0))) }, true},
		"a give that is undone": {
			func(s *cluster.State, n *cluster.Node) {
				must(s.Take(n, core(0)))
				m := s.Checkpoint()
				must(s.Give(n, core(0)))
				s.Rollback(m)
			}, false,
		},
		"it is marked twice":         {func(s *cluster.State, n *cluster.Node) { s.MarkGrown(n); s.MarkGrown(n) }, true},
		"it is held back":            {func(s *cluster.State, n *cluster.Node) { s.MarkGrown(n); s.HoldBack(n) }, false},
		"it is held back, and heals": {func(s *cluster.State, n *cluster.Node) { s.MarkGrown(n); s.HoldBack(n); s.MarkGrown(n) }, true},
		"it comes":                   {func(s *cluster.State, n *cluster.Node) { s.Remove(n.ID); s.Insert(n) }, true},
		"its labels are set as they are": {
			func(s *cluster.State, n *cluster.Node) {
				s.Relabel(n, map[string]string{"a": "b"}, nil)
				s.TakeGrown()
				s.Relabel(n, map[string]string{"a": "b"}, nil)
			}, false,
		},
		"it is removed": {func(s *cluster.State, n *cluster.Node) { s.MarkGrown(n); s.Remove(n.ID); s.MarkGrown(n) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := freeNode("a", host)
			s := cluster.NewState(n, freeNode("b", host))
			s.TakeGrown()
			c.change(s, n)
			grown := s.TakeGrown()
			if got := slices.Contains(grown, n); got != c.want || len(grown) > 1 {
				t.Errorf("%v have grown; a: %t, want %t", grown, got, c.want)
			}
			if again := s.TakeGrown(); again != nil {
				t.Errorf("%v have grown again", again)
			}
		})
	}
}

// core is a whole CPU.
func core(id int) resource.Assignment {
	return resource.Assignment{CPUs: []resource.CPUGrant{{ID: id, Milli: resource.WholeCPU}}}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func TestTakePresentLeavesWhatIsNotThere(t *testing.T) {
	n := freeNode("a", hostOf(t, "gpu2"))
	s := cluster.NewState(n)
	must(s.Take(n, core(0)))
	both, before := resource.Assignment{CPUs: append(core(0).CPUs, core(1).CPUs...)}, n.FreeCPU
	mark, free := s.Checkpoint(), n.Free.Clone()
	if got := s.TakePresent(n, both); !got.Equal(core(1)) || before-n.FreeCPU != resource.WholeCPU {
		t.Errorf("took %v, want the second CPU; %d millicores are free of %d", got, n.FreeCPU, before)
	}
	if s.Rollback(mark); n.FreeCPU != before || !n.Free.Equal(free) {
		t.Errorf("undone: %d millicores are free, want %d", n.FreeCPU, before)
	}
}

func ExampleState() {
	host := hostOf(panics{}, "gpu2")
	s := cluster.NewState(freeNode("node-1", host))
	n := s.Node("node-1")
	mark := s.Checkpoint()
	must(s.Take(n, core(0)))
	fmt.Println("tried:", n.FreeCPU)
	s.Rollback(mark)
	fmt.Println("undone:", n.FreeCPU)
	// Output:
	// tried: 63000
	// undone: 64000
}

// panics lets an example, which has no testing.T, make hosts.
type panics struct{}

func (panics) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

func BenchmarkTakeAndRollback(b *testing.B) {
	n := freeNode("a", hostOf(b, "dgx-a100"))
	s := cluster.NewState(n)
	var a resource.Assignment
	if !n.Host.Assign(n.Free, resource.Request{GPUs: 1, CPU: 8000, Memory: 64 << 30}, &a) {
		b.Fatal("no room")
	}
	b.ReportAllocs()
	for b.Loop() {
		mark := s.Checkpoint()
		must(s.Take(n, a))
		s.Rollback(mark)
	}
}
