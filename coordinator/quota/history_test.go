package quota_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

// chance draws numbers in [0, n).
type chance func(n int) int

func (c chance) oneIn(n int) bool { return c(n) == 0 }

// history is a manager and the oracle that go through the same calls.
type history struct {
	m        *quota.Manager
	o        *naive
	forest   bool
	draw     chance
	now      time.Duration
	specs    []quota.ConsumerSpec
	limited  bool
	fault    error
	evicted  int
	admitted int
	names    int    // of nodes made so far
	recorded []byte // every state, where record is set
	record   bool

	checkpoints []checkpoint // open ones, outermost first
	rolledBack  int
}

var allResources = []resource.Name{"a", "b", "c"}

func newHistory(draw chance, options bool) *history {
	h := &history{draw: draw, o: &naive{mode: quota.Maintenance}}
	if options {
		flag := func() bool { return draw(3) == 0 }
		h.o.opts = quota.Options{
			EvictAtHard: flag(), Settle: flag(), IgnoreOverdrawn: flag(), FewestVictims: flag(), PinnedWithinQuota: flag(),
			MinRunTime: time.Duration(draw(2) * draw(4)),
		}
		h.limited = flag()
	}
	h.m = quota.NewManager(h.o.opts)
	h.forest = draw(2) == 0
	trees := 1
	if h.forest {
		trees = 1 + draw(3)
		h.must(h.m.AddForest("F"))
	}
	for i := range trees {
		h.addTree(fmt.Sprint("T", i))
	}
	for i := range 12 + draw(40) {
		h.addConsumer(fmt.Sprint("c", i))
	}
	if draw(4) > 0 {
		h.setMode(quota.Normal)
	}
	return h
}

func (h *history) must(err error) {
	if err != nil && h.fault == nil {
		h.fault = err
	}
}

func (h *history) failf(format string, args ...any) { h.must(fmt.Errorf(format, args...)) }

func (h *history) vector(resources []resource.Name, most int) resource.Vector {
	v := resource.Vector{}
	for _, name := range resources {
		v[name] = int64(h.draw(most + 1))
	}
	return v
}

// spec makes a node with quota for about its share of the tree.
func (h *history) spec(parent string, resources []resource.Name, most int) quota.NodeSpec {
	s := quota.NodeSpec{Parent: parent, Hard: h.draw.oneIn(4), Quota: h.vector(resources, most)}
	if h.limited {
		for _, v := range []*resource.Vector{&s.Borrowing, &s.Lending, &s.Cap, &s.PerOwner} {
			if h.draw.oneIn(4) {
				*v = h.vector(resources[:1+h.draw(len(resources))], most)
			}
		}
	}
	return s
}

func (h *history) addTree(name string) {
	resources := allResources[:1+h.draw(3)]
	t := &nTree{name: name, cached: resources, specs: map[string]quota.NodeSpec{}, renamed: map[string]string{}}
	t.specs["n0"] = h.spec("", resources, 12)
	for i := 1; i < 2+h.draw(9); i++ {
		t.specs[fmt.Sprint("n", i)] = h.spec(fmt.Sprint("n", h.draw(i)), resources, 8)
	}
	h.names = max(h.names, len(t.specs))
	_, err := h.m.AddTree(quota.TreeSpec{Name: name, Resources: resources, Nodes: t.specs})
	h.must(err)
	if h.forest {
		h.must(h.m.AddTreeToForest("F", name))
	}
	t.build()
	h.o.trees = append(h.o.trees, t)
}

func (h *history) addConsumer(id string) {
	s := quota.ConsumerSpec{ID: id}
	if h.limited {
		s.Owner = []string{"", "ann", "bob"}[h.draw(3)]
	}
	priority, kind, pinned := h.draw(5)-1, h.draw(6)/5, h.draw.oneIn(5)
	for _, t := range h.o.trees {
		if len(h.o.trees) > 1 && h.draw.oneIn(4) {
			continue
		}
		names := slices.Sorted(maps.Keys(t.specs))
		group := names[h.draw(len(names))]
		for range 3 { // rather a leaf
			if n := t.nodes[group]; n != nil && len(n.children) > 0 {
				group = n.children[h.draw(len(n.children))].name
			}
		}
		s.Demands = append(s.Demands, quota.Demand{
			Tree: t.name, Group: group, Request: h.vector(allResources, 4), Priority: priority, Type: kind, Unpreemptable: pinned,
		})
	}
	h.must(h.m.AddConsumer(s))
	h.specs = append(h.specs, s)
}

func (h *history) setMode(mode quota.Mode) {
	h.o.mode = mode
	h.must(h.m.SetMode(mode))
}

func (h *history) demand(c *quota.ConsumerSpec, tree string) *quota.Demand {
	for i := range c.Demands {
		if c.Demands[i].Tree == tree {
			return &c.Demands[i]
		}
	}
	return nil
}

// seat is the consumer's seat on an oracle's tree, nil where not allocated.
func (t *nTree) seat(id string) *nSeat {
	for _, s := range t.seats() {
		if s.id == id {
			return s
		}
	}
	return nil
}

// want is what a consumer asks for of what the tree counts.
func (h *history) want(t *nTree, id string) resource.Vector {
	for i := range h.specs {
		if h.specs[i].ID == id {
			return h.demand(&h.specs[i], t.name).Request
		}
	}
	return nil
}

// allocate is the oracle's allocation on all of some trees or on none.
func (h *history) allocate(c *quota.ConsumerSpec, trees []*nTree, restore bool) (victims []string, ok bool) {
	var before []saved
	for _, t := range h.o.trees {
		before = append(before, t.save())
	}
	defer func() {
		if !ok {
			victims = nil
			for _, s := range before {
				s.restore()
			}
		}
	}()
	for _, t := range trees {
		d := h.demand(c, t.name)
		if d == nil || t.seat(c.ID) != nil {
			continue
		}
		s := &nSeat{id: c.ID, owner: c.Owner, want: d.Request, priority: d.Priority, kind: d.Type, pinned: d.Unpreemptable, groupName: d.Group}
		if restore {
			if !h.o.restore(t, s) {
				return nil, false
			}
			continue
		}
		if h.o.mode == quota.Maintenance {
			if s.group, s.since = t.nodes[d.Group], h.o.now; s.group == nil {
				return nil, false
			}
			t.list(s.group, s)
			continue
		}
		out, ok := h.o.admit(t, s)
		if !ok {
			return nil, false
		}
		for _, v := range out {
			victims = append(victims, v.id)
			for _, other := range h.o.trees {
				if w := other.seat(v.id); w != nil {
					h.o.release(other, w)
				}
			}
		}
	}
	return victims, true
}

// call makes a call on the manager, by one tree or by the forest.
func (h *history) call(what, id string, trees []*nTree) (quota.Result, error) {
	one, all, name := h.m.Allocate, h.m.AllocateForest, "F"
	switch what {
	case "try":
		one, all = h.m.TryAllocate, h.m.TryAllocateForest
	case "restore":
		one, all = h.m.Restore, h.m.RestoreForest
	}
	if !h.forest || len(trees) < len(h.o.trees) {
		all, name = one, trees[0].name
	}
	return all(name, id)
}

// some picks all trees, at times only one.
func (h *history) some() []*nTree {
	if h.forest && h.draw.oneIn(8) {
		i := h.draw(len(h.o.trees))
		return h.o.trees[i : i+1]
	}
	return h.o.trees
}

func (h *history) undo(id string) error {
	if h.forest {
		return h.m.UndoAllocateForest("F", id)
	}
	return h.m.UndoAllocate("T0", id)
}

// missing reports whether the consumer asks for something it has not got.
func (h *history) missing(c *quota.ConsumerSpec, trees []*nTree) bool {
	for _, t := range trees {
		if h.demand(c, t.name) != nil && t.seat(c.ID) == nil {
			return true
		}
	}
	return false
}

// step makes one call on both and compares.
func (h *history) step() {
	h.now += time.Duration(h.draw(3))
	h.o.now = h.now
	h.m.SetNow(time.Unix(0, int64(h.now)))
	switch p := h.draw(112); {
	case p >= 100:
		h.stepCheckpoint()
	case p < 60:
		h.stepAllocate("allocate", h.pick(true), h.some())
	case p < 62:
		h.stepAllocate("restore", h.pick(true), h.some())
	case p < 80:
		h.stepDeallocate(h.pick(false), h.some())
	case p < 88 && h.o.mode == quota.Normal:
		h.stepTry(h.pick(true))
	case p < 92:
		h.edit(h.o.trees[h.draw(len(h.o.trees))])
	case p < 94:
		h.stepUpdate()
	case p < 99:
		h.setMode(quota.Normal)
	default:
		h.setMode(quota.Maintenance)
	}
	h.compare()
}

// pick picks a consumer, rather one that is missing, or that is not.
func (h *history) pick(missing bool) *quota.ConsumerSpec {
	var c *quota.ConsumerSpec
	for range 4 {
		if c = &h.specs[h.draw(len(h.specs))]; h.missing(c, h.o.trees) == missing {
			break
		}
	}
	return c
}

func (h *history) stepAllocate(what string, c *quota.ConsumerSpec, trees []*nTree) {
	before := h.m.AppendState(nil)
	r, err := h.call(what, c.ID, trees)
	if !h.missing(c, trees) {
		if err == nil {
			h.failf("allocate %s: allocated already, yet %+v", c.ID, r)
		}
		return
	}
	got := slices.Clone(r.Preempted)
	want, ok := h.allocate(c, trees, what == "restore")
	switch {
	case err != nil:
		h.failf("allocate %s: %w", c.ID, err)
	case ok != r.OK:
		h.failf("allocate %s: %v (%v), the oracle says %v", c.ID, r.OK, r.Refusal, ok)
	case !r.OK && !bytes.Equal(before, h.m.AppendState(nil)):
		h.failf("allocate %s: a refusal changed the state", c.ID)
	case !r.OK && (r.Refusal.Code == quota.NotRefused || r.Refusal.Code == quota.OverQuota && r.Refusal.Want <= r.Refusal.Have):
		h.failf("allocate %s: refused because of %+v", c.ID, r.Refusal)
	case !slices.Equal(got, want):
		h.failf("allocate %s: preempted %v, the oracle %v", c.ID, got, want)
	}
	h.evicted += len(got)
	if r.OK {
		h.admitted++
	}
}

func (h *history) stepDeallocate(c *quota.ConsumerSpec, trees []*nTree) {
	want := false
	for _, t := range trees {
		if s := t.seat(c.ID); s != nil {
			h.o.release(t, s)
			want = true
		}
	}
	var got bool
	if h.forest && len(trees) == len(h.o.trees) {
		got = h.m.DeallocateForest("F", c.ID)
	} else {
		got = h.m.Deallocate(trees[0].name, c.ID)
	}
	if got != want {
		h.failf("deallocate %s: %v, the oracle says %v", c.ID, got, want)
	}
}

// stepTry tries and undoes, which is nothing.
func (h *history) stepTry(c *quota.ConsumerSpec) {
	before := h.m.AppendState(nil)
	places := h.places()
	_, err := h.call("try", c.ID, h.o.trees)
	if err != nil {
		if h.missing(c, h.o.trees) {
			h.failf("try %s: %w", c.ID, err)
		}
		return
	}
	h.checkMoves(places)
	places = h.places()
	h.must(h.undo(c.ID))
	h.checkMoves(places)
	if after := h.m.AppendState(nil); !bytes.Equal(before, after) {
		h.failf("try and undo of %s leave (-want +got):\n%s", c.ID, cmp.Diff(string(before), string(after)))
	}
	if h.undo(c.ID) == nil {
		h.failf("a second undo of %s succeeds", c.ID)
	}
}

// edit changes a tree's cache.
func (h *history) edit(t *nTree) {
	cache, err := h.m.Cache(t.name)
	h.must(err)
	names := slices.Sorted(maps.Keys(t.specs))
	switch h.draw(6) {
	case 0:
		if len(names) == 0 || h.draw(2) > 0 {
			return
		}
		old, renamed := names[h.draw(len(names))], fmt.Sprint("m", h.draw(8))
		_, clash := t.specs[renamed]
		if err := cache.RenameNode(old, renamed); (err != nil) != clash || clash {
			if (err != nil) != clash && old != renamed {
				h.failf("rename %s to %s: %v", old, renamed, err)
			}
			return
		}
		t.rename(old, renamed)
	case 1:
		if len(names) > 0 && h.draw.oneIn(2) {
			name := names[h.draw(len(names))]
			if name == "n0" && h.draw(8) > 0 {
				return
			}
			h.must(cache.DeleteNode(name))
			delete(t.specs, name)
		}
	case 2:
		if h.draw.oneIn(3) {
			t.cached = allResources[h.draw(2) : 2+h.draw(2)]
			h.must(cache.SetResources(t.cached))
		}
	default:
		name, parent := fmt.Sprint("n", h.draw(h.names+2)), fmt.Sprint("n", h.draw(h.names+1))
		if old, known := t.specs[name]; known && h.draw(8) > 0 {
			parent = old.Parent
		}
		s := h.spec(parent, allResources, 8)
		h.must(cache.SetNode(name, s))
		t.specs[name] = s
	}
}

func (t *nTree) rename(old, renamed string) {
	t.specs[renamed] = t.specs[old]
	delete(t.specs, old)
	for name, s := range t.specs {
		if s.Parent == old {
			s.Parent = renamed
			t.specs[name] = s
		}
	}
	for from, to := range t.renamed {
		if to == old {
			t.renamed[from] = renamed
			return
		}
	}
	if _, known := t.renamed[old]; !known {
		t.renamed[old] = renamed
	}
}

func (h *history) stepUpdate() {
	var results []quota.UpdateResult
	if h.forest {
		r, err := h.m.UpdateForest("F")
		h.must(err)
		results = r
	} else {
		r, err := h.m.UpdateTree("T0")
		h.must(err)
		results = append(results, r)
	}
	h.endCheckpoints()
	var lost []*nSeat
	for i, t := range h.o.trees {
		out := h.o.update(t, func(id string) resource.Vector { return h.want(t, id) })
		lost = append(lost, out...)
		if len(out) != len(results[i].Lost) {
			h.failf("update %s: lost %v, the oracle %d", t.name, results[i].Lost, len(out))
		}
	}
	for _, s := range lost {
		for _, t := range h.o.trees {
			if w := t.seat(s.id); w != nil {
				h.o.release(t, w)
			}
		}
	}
}
