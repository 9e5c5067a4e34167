package decisions_test

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"pgregory.net/rapid"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// toy is a leader of a small cluster that keeps the rules and draws lots for
// everything else. A unit of the higher priority evicts units that it needs; each
// namespace has a limit of GPUs.
type toy struct {
	t       *rapid.T
	tracker *decisions.Tracker
	log     []decisions.Record
	room    *sched.Room
	state   *cluster.State
	units   []*unit // all that wait, are placed or run
	limit   map[string]int
	counter uint64

	states bool // the sink may want a State
	lose   bool // the sink may lose records
	lost   uint64
	again  bool
}

// unit is one of the toy's.
type unit struct {
	key       queue.Key
	namespace string
	demand    place.Unit
	right     sched.Right
	step      int // waiting, resting, placed or runs
	tx        resource.TxID
	plan      []place.Choice
	pinned    bool // it gives way to nobody
}

const (
	waiting = iota
	resting
	placed
	runs
)

func (u *unit) gpus() int { return u.demand.Members * u.demand.Request.GPUs }

func (u *unit) traits() sched.Traits {
	return sched.Traits{
		Demand: fmt.Sprint(u.demand.Members, u.demand.Request, u.demand.Constraints.Key()), Namespace: u.namespace, Priority: u.key.Priority, Right: u.right,
	}
}

// newNode returns a host with 8 GPUs.
func newNode(id string, labels map[string]string, taints ...constraint.Taint) *cluster.Node {
	host := host()
	var table constraint.Table
	return &cluster.Node{ID: resource.NodeID(id), Ready: true, Host: host, Free: host.NewFree(), Labels: table.Intern(labels, taints)}
}

// host is the hardware of all nodes.
var host = sync.OnceValue(func() *fit.Host {
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		panic(err)
	}
	host, err := fit.NewHostLike(nil, profile.Topology(), profile.Inventory("n"), fit.Reserved{})
	if err != nil {
		panic(err)
	}
	return host
})

func newToy(t *rapid.T, epoch resource.Epoch, states, lose bool) *toy {
	w := &toy{t: t, room: sched.NewRoom(), state: cluster.NewState(), limit: map[string]int{}, states: states, lose: lose}
	w.state.Insert(newNode("n0", map[string]string{"half": "0"}))
	w.state.Insert(newNode("n1", map[string]string{"half": "1"}))
	w.state.Insert(newNode("n2", map[string]string{"half": "1"}, constraint.Taint{Key: "maintenance", Effect: constraint.NoSchedule}))
	w.state.TakeGrown()
	for range rapid.IntRange(0, 4).Draw(t, "wait at first") {
		w.submit()
	}
	if rapid.Bool().Draw(t, "passed before") {
		w.pass()
	}
	w.units = slices.DeleteFunc(w.units, func(u *unit) bool { return u.step != waiting && u.step != resting })
	w.tracker = decisions.NewTracker(epoch, w.room, w, w.take)
	return w
}

// take is the sink: records are lost from time to time, until a State comes.
func (w *toy) take(r decisions.Record) bool {
	if r.State == nil && (w.again || w.lose && rapid.IntRange(0, 30).Draw(w.t, "lost") == 0) {
		w.lost++
		w.again = rapid.IntRange(0, 3).Draw(w.t, "still") > 0
		return !w.again
	}
	if w.lost > 0 {
		w.log = append(w.log, decisions.Record{Seq: r.Seq - 1, Gap: &decisions.Gap{Lost: w.lost}})
		w.lost = 0
	}
	w.again = false
	w.log = append(w.log, r)
	return w.states && rapid.IntRange(0, 50).Draw(w.t, "new file") == 0
}

// Held is decisions.Words'.
func (w *toy) Held(path string) decisions.Evidence {
	return decisions.Evidence{Why: decisions.InBackoff, Until: int64(len(path))}
}

// Asleep is decisions.Words'.
func (w *toy) Asleep(c *sched.Class, e *sched.Evidence) (string, func() string) {
	if e.Code == sched.OverLimit {
		return c.Namespace, func() string { return fmt.Sprintf("%d GPUs at most", w.limit[c.Namespace]) }
	}
	return "", func() string { return fmt.Sprintf("want %d GPUs", c.Demand().Request.GPUs) }
}

func (w *toy) submit() {
	t := w.t
	w.counter++
	u := &unit{namespace: fmt.Sprint("ns", rapid.IntRange(0, 1).Draw(t, "namespace"))}
	u.key = queue.Key{Priority: int32(rapid.IntRange(-1, 2).Draw(t, "priority")), Epoch: 7, Counter: w.counter, Path: fmt.Sprintf("%s/alloc/u%d/0", u.namespace, w.counter)}
	u.demand = place.Unit{Members: rapid.IntRange(1, 2).Draw(t, "members"), Request: resource.Request{CPU: 1000, Memory: 1 << 30, GPUs: rapid.SampledFrom([]int{1, 4, 8}).Draw(t, "GPUs")}}
	u.pinned = rapid.Bool().Draw(t, "pinned")
	if rapid.Bool().Draw(t, "preempts") {
		u.right = sched.Lower
	}
	switch rapid.IntRange(0, 4).Draw(t, "constraints") {
	case 0:
		u.demand.Constraints = constraint.Compile(constraint.Spec{NodeSelector: map[string]string{"half": "1"}})
	case 1:
		u.demand.Constraints = constraint.Compile(constraint.Spec{Tolerations: []constraint.Toleration{{AnyValue: true}}})
	}
	w.units = append(w.units, u)
	w.room.Offer(u.key, u.traits(), &u.demand)
}

// step does one thing.
func (w *toy) step() {
	switch rapid.IntRange(0, 11).Draw(w.t, "step") {
	case 0, 1, 2:
		w.submit()
	case 3:
		if u := w.pick(waiting); u != nil {
			w.forget(u)
			w.room.Remove(u.key)
		}
	case 4:
		if u := w.pick(placed); u != nil {
			w.tracker.Aborted(u.tx)
			w.give(u)
			u.step = resting
			w.room.Hold(u.key)
		}
	case 5:
		if u := w.pick(resting); u != nil {
			u.step = waiting
			w.room.Offer(u.key, u.traits(), &u.demand)
		}
	case 6:
		if u := w.pick(placed); u != nil {
			w.tracker.Committed(u.tx, resource.Revision(100+w.counter))
			u.step = runs
			if !u.pinned {
				w.room.Evictable(u.key.Priority, nodesOf(u), w.held)
			}
		}
	case 7:
		if u := w.pick(runs); u != nil {
			w.end(u)
		}
	case 8:
		w.limit[fmt.Sprint("ns", rapid.IntRange(0, 1).Draw(w.t, "of"))] = rapid.IntRange(2, 12).Draw(w.t, "limit")
		w.room.All()
	case 9:
		n := rapid.SampledFrom(w.state.Nodes()).Draw(w.t, "node")
		w.state.SetUnschedulable(n, !n.Unschedulable)
		w.takeGrown()
	default:
		w.pass()
	}
}

func (w *toy) pick(step int) *unit {
	list := slices.DeleteFunc(slices.Clone(w.units), func(u *unit) bool { return u.step != step })
	if len(list) == 0 {
		return nil
	}
	return rapid.SampledFrom(list).Draw(w.t, "unit")
}

func (w *toy) forget(u *unit) {
	w.units = slices.DeleteFunc(w.units, func(v *unit) bool { return u == v })
}

func (w *toy) end(u *unit) {
	w.tracker.Ended(u.tx, u.key.Path, "done")
	w.forget(u)
	w.give(u)
}

// give frees what a unit holds.
func (w *toy) give(u *unit) {
	w.room.Freed(u.namespace, nil)
	w.undo(u.plan)
	u.plan = nil
	w.takeGrown()
}

func (w *toy) takeGrown() {
	for _, n := range w.state.TakeGrown() {
		w.room.Grew(n, w.held)
	}
}

func (w *toy) undo(plan []place.Choice) {
	for _, m := range plan {
		if err := w.state.Give(m.Node, m.Assignment); err != nil {
			panic(err)
		}
	}
}

func nodesOf(u *unit) (nodes []*cluster.Node) {
	for _, m := range u.plan {
		if !slices.Contains(nodes, m.Node) {
			nodes = append(nodes, m.Node)
		}
	}
	return nodes
}

// held is sched.Held.
func (w *toy) held(n *cluster.Node, below int64) (sum cluster.Amounts) {
	for _, u := range w.units {
		for _, m := range u.plan {
			if m.Node == n && int64(u.key.Priority) < below {
				r := &u.demand.Request
				sum = cluster.Amounts{CPU: sum.CPU + r.CPU, Memory: sum.Memory + r.Memory, GPU: sum.GPU + r.GPUMilli()}
			}
		}
	}
	return sum
}

// pass lets the room pass a few times.
func (w *toy) pass() {
	for range 100 {
		if !w.room.Pass(rapid.IntRange(1, 4).Draw(w.t, "tries"), w) {
			return
		}
	}
}

// Wait is sched.Trial's.
func (w *toy) Wait(string, *sched.Evidence) {}

// Try is sched.Trial's.
func (w *toy) Try(k queue.Key, _ bool) *sched.Evidence {
	u := w.units[slices.IndexFunc(w.units, func(u *unit) bool { return u.key == k })]
	used := 0
	for _, v := range w.units {
		if v.namespace == u.namespace && v.plan != nil {
			used += v.gpus()
		}
	}
	if limit, bound := w.limit[u.namespace]; bound && used+u.gpus() > limit {
		return &sched.Evidence{Code: sched.OverLimit}
	}
	plan, ok := place.Place(w.state, u.demand)
	var victims []*unit
	if !ok && u.right == sched.Lower {
		plan, victims, ok = w.clear(u)
	}
	switch {
	case ok:
		w.place(u, plan, victims)
		return nil
	case u.right == sched.Lower:
		return &sched.Evidence{Code: sched.NoVictims}
	}
	return &sched.Evidence{Code: sched.NoPlace}
}

// clear finds units of lower priority after which a unit fits, and takes its place.
func (w *toy) clear(u *unit) ([]place.Choice, []*unit, bool) {
	lower := slices.DeleteFunc(slices.Clone(w.units), func(v *unit) bool { return v.step != runs || v.pinned || v.key.Priority >= u.key.Priority })
	slices.SortFunc(lower, func(a, b *unit) int { return cmp.Compare(b.key.Counter, a.key.Counter) })
	mark := w.state.Checkpoint()
	for i, v := range lower {
		w.undo(v.plan)
		if plan, ok := place.Place(w.state, u.demand); ok {
			w.state.Keep(mark)
			return plan, lower[:i+1], true
		}
	}
	w.state.Rollback(mark)
	return nil, nil, false
}

// place begins a unit; what its victims held is its own already.
func (w *toy) place(u *unit, plan []place.Choice, victims []*unit) {
	w.counter++
	u.tx, u.step, u.plan = resource.TxID(fmt.Sprint("tx", w.counter)), placed, plan
	p := decisions.Placement{Key: u.key, Tx: u.tx, Kind: decisions.Plain}
	for _, v := range victims {
		p.Kind = decisions.Preemption
		p.Victims = append(p.Victims, decisions.Victim{Unit: v.key.Path, Priority: v.key.Priority})
	}
	for _, m := range plan {
		var gpus []int
		for _, g := range m.Assignment.GPUs {
			gpus = append(gpus, g.Index)
		}
		p.Devices = append(p.Devices, decisions.Devices{Node: m.Node.ID, GPUs: gpus})
	}
	w.tracker.Placed(p)
	w.room.Remove(u.key)
	for _, v := range victims {
		v.plan = nil
		w.end(v)
	}
}

// drawLog is what a leader that keeps the rules has logged.
func drawLog(t *rapid.T, states, lose bool) []decisions.Record {
	w := newToy(t, 7, states, lose)
	for range rapid.IntRange(1, 120).Draw(t, "steps") {
		w.step()
	}
	return w.log
}

func check(log []decisions.Record) *decisions.Report {
	c := decisions.NewChecker()
	for _, r := range log {
		c.Record(r)
	}
	return c.Report()
}
