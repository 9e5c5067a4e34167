package sched_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// world is a cluster in which a trial takes effect at once. A unit of a higher
// priority evicts what it needs; each namespace has a limit of GPUs.
type world struct {
	state   *cluster.State
	labels  constraint.Table
	waiting []*unit // in order
	running []*unit
	limit   map[string]int
	room    *sched.Room // nil: every pass tries every unit
	tries   int
	missed  []string // placed by a backstop
}

// unit is one of the world.
type unit struct {
	key       queue.Key
	namespace string
	right     sched.Right
	demand    place.Unit
	plan      []place.Choice
	busy      bool // it can give way only later
}

func (u *unit) gpus() int { return u.demand.Members * u.demand.Request.GPUs }

func (u *unit) traits() sched.Traits {
	return sched.Traits{
		Demand:    fmt.Sprintf("%d %+v %s", u.demand.Members, u.demand.Request, u.demand.Constraints.Key()),
		Namespace: u.namespace, Priority: u.key.Priority, Right: u.right,
	}
}

// newWorld returns a world of equal hosts with 8 GPUs.
func newWorld(tb testing.TB, nodes int, room *sched.Room) *world {
	tb.Helper()
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		tb.Fatal(err)
	}
	w := &world{room: room, limit: map[string]int{}, state: cluster.NewState()}
	var like *fit.Host
	for i := range nodes {
		id := fmt.Sprintf("node-%02d", i)
		host, err := fit.NewHostLike(like, profile.Topology(), profile.Inventory(id), fit.Reserved{})
		if err != nil {
			tb.Fatal(err)
		}
		like = host
		n := &cluster.Node{ID: resource.NodeID(id), Ready: true, Host: host, Free: host.NewFree(), Labels: w.labels.Intern(map[string]string{"half": fmt.Sprint(i % 2)}, nil)}
		w.state.Insert(n)
	}
	return w
}

// submit has a unit wait.
func (w *world) submit(u *unit) {
	i, _ := slices.BinarySearchFunc(w.waiting, u, func(a, b *unit) int { return queue.Compare(a.key, b.key) })
	w.waiting = slices.Insert(w.waiting, i, u)
	if w.room != nil {
		w.room.Offer(u.key, u.traits(), &u.demand)
	}
}

// withdraw takes a waiting unit out.
func (w *world) withdraw(u *unit) {
	w.waiting = slices.DeleteFunc(w.waiting, func(v *unit) bool { return v == u })
	if w.room != nil {
		w.room.Remove(u.key)
	}
}

// end ends a running unit.
func (w *world) end(u *unit) {
	w.running = slices.DeleteFunc(w.running, func(v *unit) bool { return v == u })
	w.give(u.plan)
	if w.room == nil {
		return
	}
	for _, n := range u.nodes() {
		w.room.Grew(n, w.held)
	}
	w.room.Freed(u.namespace, nil)
}

// settle lets a unit give way from now on.
func (w *world) settle(u *unit) {
	u.busy = false
	if w.room != nil {
		w.room.Evictable(u.key.Priority, u.nodes(), w.held)
	}
}

// setClosed opens or closes a node.
func (w *world) setClosed(n *cluster.Node, closed bool) {
	w.state.SetUnschedulable(n, closed)
	if w.room == nil || closed {
		return
	}
	w.room.Grew(n, w.held)
}

// setLimit changes a namespace's limit.
func (w *world) setLimit(namespace string, gpus int) {
	w.limit[namespace] = gpus
	if w.room != nil {
		w.room.All()
	}
}

func (u *unit) nodes() []*cluster.Node {
	var nodes []*cluster.Node
	for _, m := range u.plan {
		if !slices.Contains(nodes, m.Node) {
			nodes = append(nodes, m.Node)
		}
	}
	return nodes
}

// held sums what units of lower priority hold on a node.
func (w *world) held(n *cluster.Node, below int64) (sum cluster.Amounts) {
	for _, u := range w.running {
		for _, m := range u.plan {
			if m.Node == n && int64(u.key.Priority) < below {
				sum.CPU += u.demand.Request.CPU
				sum.Memory += u.demand.Request.Memory
				sum.GPU += u.demand.Request.GPUMilli()
			}
		}
	}
	return sum
}

func (w *world) used(namespace string) (sum int) {
	for _, u := range w.running {
		if u.namespace == namespace {
			sum += u.gpus()
		}
	}
	return sum
}

// pass lets the world settle: one pass of the room, or the first unit that can
// begin, again and again. It returns the units that began.
func (w *world) pass(tb testing.TB) (began []string) {
	before := slices.Clone(w.running)
	if w.room != nil {
		for range 1000 {
			if !w.room.Pass(3, w) {
				break
			}
		}
		if w.room.Busy() {
			tb.Fatal("the room does not come to rest")
		}
	} else {
		for w.beginFirst() {
		}
	}
	for _, u := range w.running {
		if !slices.Contains(before, u) {
			began = append(began, u.key.Path)
		}
	}
	return began
}

// beginFirst begins the first unit in the order that can begin.
func (w *world) beginFirst() bool {
	return slices.ContainsFunc(w.waiting, func(u *unit) bool { return w.try(u) == nil })
}

// try begins a unit, or says why not.
func (w *world) try(u *unit) *sched.Evidence {
	w.tries++
	if limit, bound := w.limit[u.namespace]; bound && w.used(u.namespace)+u.gpus() > limit {
		return &sched.Evidence{Code: sched.OverLimit}
	}
	plan, ok := place.Place(w.state, u.demand)
	if !ok && u.right == sched.Lower {
		plan, ok = w.clear(u)
	}
	switch {
	case ok:
		w.withdraw(u)
		u.plan = plan
		w.running = append(w.running, u)
		return nil
	case u.right == sched.Lower:
		return &sched.Evidence{Code: sched.NoVictims}
	}
	return &sched.Evidence{Code: sched.NoPlace}
}

// clear ends units of lower priority, the last in the order first, until the unit fits, and
// nobody where that does not suffice.
func (w *world) clear(u *unit) ([]place.Choice, bool) {
	var victims []*unit
	enough := false
	for _, v := range slices.Backward(sorted(w.running)) {
		if v.key.Priority >= u.key.Priority || v.busy {
			continue
		}
		w.give(v.plan)
		victims = append(victims, v)
		if plan, ok := place.Place(w.state, u.demand); ok {
			w.give(plan)
			enough = true
			break
		}
	}
	for _, v := range slices.Backward(victims) {
		w.retake(v)
	}
	if !enough {
		return nil, false
	}
	for _, v := range victims {
		w.end(v)
	}
	return place.Place(w.state, u.demand)
}

func (w *world) retake(v *unit) {
	for _, m := range v.plan {
		if err := w.state.Take(m.Node, m.Assignment); err != nil {
			panic(err)
		}
	}
}

// Try is sched.Trial's.
func (w *world) Try(k queue.Key, backstop bool) *sched.Evidence {
	i := slices.IndexFunc(w.waiting, func(u *unit) bool { return u.key == k })
	e := w.try(w.waiting[i])
	if e == nil && backstop {
		w.missed = append(w.missed, k.Path)
	}
	return e
}

// Wait is sched.Trial's.
func (w *world) Wait(string, *sched.Evidence) {}

func (w *world) give(plan []place.Choice) {
	for _, m := range plan {
		if err := w.state.Give(m.Node, m.Assignment); err != nil {
			panic(err)
		}
	}
}
