package failpoints_test

import (
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/test/rig"
)

var seed = flag.Uint64("failpoints.seed", 1, "draws which occurrence of a step meets its fault")

// passed is the result of reached, for both tests of this file.
var passed map[string]map[point]int

// point is one side of a step.
type point struct {
	name  string
	after bool
}

func (p point) String() string {
	if p.after {
		return "after " + p.name
	}
	return "before " + p.name
}

// run takes a fresh cluster through a scenario.
func run(t *testing.T, scenario func(*client), step func(*rig.Cluster, rig.Step) error) {
	t.Helper()
	var w *client
	o := rig.Options{
		Equip:     func(config *agent.Config, _ *agent.Deps) { config.AssumeDeadAfter = w.assumedDead(config.Node) },
		Supervise: true, Poll: time.Second, Patience: 10 * time.Minute, Heartbeat: 10 * time.Second,
		Configure: func(c *coordinator.Config) {
			c.RecordRetention = retention
			c.CheckAgent = func(string) error { return nil } // where a node serves that comes back after it was deleted
		},
	}
	bubble(t, o, func(t *testing.T, c *rig.Cluster) {
		w = newClient(t, c)
		c.OnStep(func(s rig.Step) error { return errors.Join(w.at(s), step(c, s)) })
		c.StartCoordinator("c1")
		c.Leader()
		c.StartCoordinator("c2")
		c.StartAgent("n1")
		c.StartAgent("n2")
		c.AwaitReady(2)
		scenario(w)
		w.settle()
	})
}

// reached runs every scenario without a fault and counts how often each point
// is passed in it.
func reached(t *testing.T, name string) map[string]map[point]int {
	t.Helper()
	var mu sync.Mutex
	counts := map[string]map[point]int{}
	t.Run(name, func(t *testing.T) {
		for name, scenario := range scenarios {
			count := map[point]int{}
			counts[name] = count
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				run(t, scenario, func(_ *rig.Cluster, s rig.Step) error {
					mu.Lock()
					defer mu.Unlock()
					count[point{s.Name, s.After}]++
					return nil
				})
			})
		}
	})
	return counts
}

// TestEveryStepIsTaken keeps rig.Steps and the scenarios in step with the code.
func TestEveryStepIsTaken(t *testing.T) {
	taken := map[string]bool{}
	for i := range 4 { // writes of the same moment may share a Txn and its name
		passed = reached(t, fmt.Sprint("pass ", i+1))
		for name, count := range passed {
			for p := range count {
				taken[p.name] = true
				if rig.Steps[p.name] == "" {
					t.Errorf("scenario %q takes step %q, which rig.Steps does not name", name, p.name)
				}
			}
		}
		if len(taken) >= len(rig.Steps) {
			break
		}
	}
	for name := range rig.Steps {
		if !taken[name] {
			t.Errorf("no scenario takes step %q", name)
		}
	}
}

// TestAFaultAtEveryStep lets each process suffer faults on either side of each
// step, in a scenario that takes the step and at an occurrence of it that are
// drawn. -failpoints.seed draws others. `make test-long` runs all faults of each
// point, `make test` a part of them.
func TestAFaultAtEveryStep(t *testing.T) {
	if passed == nil {
		passed = reached(t, "without a fault")
	}
	part := newPart(t)
	for _, name := range slices.Sorted(maps.Keys(rig.Steps)) {
		for _, after := range []bool{false, true} {
			p := point{name, after}
			var where []string
			for _, scenario := range slices.Sorted(maps.Keys(scenarios)) {
				if passed[scenario][p] > 0 {
					where = append(where, scenario)
				}
			}
			if len(where) == 0 {
				continue
			}
			for _, f := range part.of(faults(p)) {
				draw := f.draw()
				scenario := where[draw.IntN(len(where))]
				f.nth = 1 + draw.IntN(passed[scenario][p])
				t.Run(f.String(), func(t *testing.T) {
					t.Parallel()
					f.meet(t, scenario, where)
				})
			}
		}
	}
}

// meet runs scenarios until the fault has happened. What happens at the same
// time has no order, so a point may be passed less often than it was.
func (f fault) meet(t *testing.T, scenario string, where []string) {
	for range 4 {
		for _, next := range append([]string{scenario}, where...) {
			t.Logf("in %q, time %d of it", next, f.nth)
			if f.run(t, scenarios[next]) || t.Failed() {
				return
			}
			f.nth = 1
		}
	}
	t.Error("the point was not passed again")
}

// faults are those that may happen at a point.
func faults(p point) []fault {
	list := []fault{
		{point: p, victim: "agent", action: "crashes"},
		{point: p, victim: "agent", action: "loses power"},
		{point: p, victim: "agent", action: "pauses"},
		{point: p, victim: "agent", action: "fails"},
		{point: p, victim: "coordinator", action: "crashes"},
		{point: p, victim: "coordinator", action: "pauses"},
		{point: p, victim: "coordinator", action: "fails"},
	}
	list = append(list, fault{point: p, victim: "step", action: "takes long"})
	if !strings.HasPrefix(p.name, "journal") && !strings.HasPrefix(p.name, "assignment") {
		list = append(list, fault{point: p, victim: "agent", action: "reboots meanwhile"})
	}
	if !p.after && (p.name == "journal append" || p.name == "journal fill" || p.name == "assignment write") {
		list = append(list, fault{point: p, victim: "agent", action: "is torn"})
	}
	return list
}

// run takes a cluster through the scenario and reports whether the fault
// happened.
func (f fault) run(t *testing.T, scenario func(*client)) bool {
	var seen atomic.Int32
	run(t, scenario, func(c *rig.Cluster, s rig.Step) error {
		if (point{s.Name, s.After}) != f.point || int(seen.Add(1)) != f.nth {
			return nil
		}
		return f.act(c, s)
	})
	return int(seen.Load()) >= f.nth
}

var errStep = errors.New("this step fails")

// fault is what happens at one occurrence of a point.
type fault struct {
	point
	nth    int
	victim string // agent, coordinator or step
	action string
}

func (f fault) String() string {
	return fmt.Sprintf("%s/%s %s", f.point, f.victim, f.action)
}

// draw chooses where a fault happens, whatever the others do.
func (f fault) draw() *rand.Rand { return drawn(*seed, f.String()) }

func drawn(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// act lets the fault happen; it returns what the step ends with.
func (f fault) act(c *rig.Cluster, s rig.Step) error {
	node, id := s.Node, s.Coordinator
	if node == "" {
		node = "n1"
	}
	if id == "" {
		id = leaderNow(c)
	}
	if f.victim == "step" {
		pass(20 * time.Second) // longer than a promise lasts
		return nil
	}
	if f.victim == "coordinator" {
		return f.actOnCoordinator(c, id, s)
	}
	if a := c.Agent(node); a != nil {
		return f.actOnAgent(c, a, s)
	}
	return nil // it has not been started yet
}

func (f fault) actOnAgent(c *rig.Cluster, a *rig.Agent, s rig.Step) error {
	switch f.action {
	case "crashes":
		a.Kill()
		time.AfterFunc(10*time.Second, a.Start)
	case "loses power":
		a.Kill()
		time.AfterFunc(10*time.Second, a.PowerCycle)
	case "reboots meanwhile":
		a.PowerCycle()
		pass(time.Second) // it has registered since
	case "is torn":
		a.Kill()
		time.AfterFunc(10*time.Second, a.Start)
		return rig.ErrTorn
	case "pauses":
		a.Pause(time.Minute)
	case "fails":
		if s.Coordinator == "" {
			return errStep
		}
		a.Disconnect()
	}
	return nil
}

func (f fault) actOnCoordinator(c *rig.Cluster, id string, s rig.Step) error {
	var k *rig.Coordinator
	for _, other := range c.Coordinators() {
		if other.ID == id {
			k = other // the newest of that name
		}
	}
	if k == nil {
		return nil
	}
	switch f.action {
	case "crashes":
		k.Kill()
		time.AfterFunc(10*time.Second, func() { c.StartCoordinator(id) })
	case "pauses":
		k.Pause(time.Minute)
	case "fails":
		if s.Coordinator != "" {
			return errStep
		}
		k.Disconnect()
	}
	return nil
}

func leaderNow(c *rig.Cluster) string {
	for _, k := range c.Coordinators() {
		if k.Up() && k.Leading() {
			return k.ID
		}
	}
	return "c1"
}
