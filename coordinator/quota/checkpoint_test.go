package quota_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/quota"
)

// checkpoint is an open checkpoint of a history, with the oracle's copy of
// everything.
type checkpoint struct {
	mark  quota.Mark
	state []byte
	saved []saved
}

// stepCheckpoint begins a checkpoint, or ends the innermost.
func (h *history) stepCheckpoint() {
	last := len(h.checkpoints) - 1
	if last < 0 || last < 3 && h.draw(2) == 0 {
		c := checkpoint{mark: h.m.Checkpoint(), state: h.allocations()}
		for _, t := range h.o.trees {
			c.saved = append(c.saved, t.save())
		}
		h.checkpoints = append(h.checkpoints, c)
		return
	}
	c := h.checkpoints[last]
	if last > 0 {
		h.wantError("an outer checkpoint", h.m.Rollback(h.checkpoints[0].mark), quota.ErrNested)
		h.wantError("an outer checkpoint", h.m.Keep(h.checkpoints[0].mark), quota.ErrNested)
	}
	h.checkpoints = h.checkpoints[:last]
	if h.draw(3) == 0 {
		h.must(h.m.Keep(c.mark))
	} else {
		places := h.places()
		h.must(h.m.Rollback(c.mark))
		for _, s := range c.saved {
			s.restore()
		}
		h.rolledBack++
		h.checkMoves(places)
		if after := h.allocations(); !bytes.Equal(c.state, after) {
			h.failf("a rollback leaves (-want +got):\n%s", cmp.Diff(string(c.state), string(after)))
		}
	}
	h.wantError("an ended checkpoint", h.m.Rollback(c.mark), quota.ErrStale)
}

// allocations is the manager's state without its mode, which no rollback changes.
func (h *history) allocations() []byte {
	_, rest, _ := bytes.Cut(h.m.AppendState(nil), []byte("\n"))
	return rest
}

func (h *history) wantError(what string, err, want error) {
	if !errors.Is(err, want) {
		h.failf("%s: %v, want %w", what, err, want)
	}
}

// endCheckpoints is after a call that ends them all.
func (h *history) endCheckpoints() {
	for _, c := range h.checkpoints {
		h.wantError("a checkpoint before an update", h.m.Rollback(c.mark), quota.ErrStale)
	}
	h.checkpoints = nil
}

// stroke is a random call of a manager; what it returns says all of its result.
type stroke func(m *quota.Manager) string

func newStroke(h *history) stroke {
	id := h.specs[h.draw(len(h.specs))].ID
	trees := len(h.some())
	one := h.o.trees[h.draw(len(h.o.trees))].name
	forest := h.forest && trees == len(h.o.trees)
	result := func(m *quota.Manager, r quota.Result, err error) string {
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%+v %v %v %v", r, err, m.Moves(), m.ProtectedUntil())
	}
	allocation := func(single, all func(m *quota.Manager, on, id string) (quota.Result, error)) stroke {
		return func(m *quota.Manager) string {
			call, on := single, one
			if forest {
				call, on = all, "F"
			}
			r, err := call(m, on, id)
			return result(m, r, err)
		}
	}
	switch p := h.draw(20); {
	case p < 12:
		return allocation((*quota.Manager).Allocate, (*quota.Manager).AllocateForest)
	case p < 13:
		return allocation((*quota.Manager).Restore, (*quota.Manager).RestoreForest)
	case p < 14:
		return allocation((*quota.Manager).TryAllocate, (*quota.Manager).TryAllocateForest)
	case p < 15:
		return func(m *quota.Manager) string {
			if _, err := m.TryAllocate(one, id); err != nil {
				return err.Error()
			}
			return fmt.Sprint(m.UndoAllocate(one, id), m.Moves())
		}
	case forest:
		return func(m *quota.Manager) string { return fmt.Sprint(m.DeallocateForest("F", id)) }
	default:
		return func(m *quota.Manager) string { return fmt.Sprint(m.Deallocate(one, id)) }
	}
}

// Calls that were rolled back have not been: a manager that was spared them is in
// the same state, and every later call has the same result.
func TestARollbackIsAsIfNothingHadBeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "world")
		world := func() *history { return newHistory(rand.New(rand.NewPCG(seed, 3)).IntN, seed%2 == 1) }
		h, twin := world(), world().m
		m := h.m
		h.draw = func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") }
		now := 0
		both := func() {
			s := newStroke(h)
			if got, want := s(m), s(twin); got != want {
				t.Fatalf("a later call:\n got %s\nwant %s", got, want)
			}
		}
		var whatIf func(depth int)
		whatIf = func(depth int) {
			mark := m.Checkpoint()
			for range h.draw(12) {
				switch h.draw(8) {
				case 0:
					if depth < 3 {
						whatIf(depth + 1)
					}
				case 1:
					kept := m.Checkpoint()
					newStroke(h)(m)
					h.must(m.Keep(kept))
				default:
					newStroke(h)(m)
				}
			}
			h.must(m.Rollback(mark))
		}
		for range 1 + h.draw(12) {
			now += h.draw(3)
			m.SetNow(time.Unix(0, int64(now)))
			twin.SetNow(time.Unix(0, int64(now)))
			for range h.draw(6) {
				both()
			}
			whatIf(0)
			h.must(m.Check())
			if diff := cmp.Diff(string(twin.AppendState(nil)), string(m.AppendState(nil))); diff != "" || h.fault != nil {
				t.Fatalf("after a rollback: %v (-twin +rolled back):\n%s", h.fault, diff)
			}
		}
	})
}

// A sharer that was released and came back within a checkpoint stands in its old
// place after the rollback, for as long as it has stood there.
func TestARollbackKeepsPlacesAndTimes(t *testing.T) {
	m := lab(quota.Options{MinRunTime: time.Hour}, map[string]quota.NodeSpec{"all": {Quota: gpus(2)}, "a": {Parent: "all"}, "b": {Parent: "all", Quota: gpus(2)}})
	start := time.Unix(1_000_000, 0)
	m.SetNow(start)
	for _, id := range []string{"first", "second"} {
		arrive(m, id, "", quota.Demand{Group: "a", Request: gpus(1)})
	}
	m.SetNow(start.Add(time.Hour))
	mark := m.Checkpoint()
	m.Deallocate("lab", "first")
	if r, err := m.Allocate("lab", "first"); err != nil || !r.OK {
		t.Fatal(r, err)
	}
	if err := m.Rollback(mark); err != nil {
		t.Fatal(err)
	}
	if err := m.AddConsumer(quota.ConsumerSpec{ID: "owner", Demands: []quota.Demand{{Tree: "lab", Group: "b", Request: gpus(1)}}}); err != nil {
		t.Fatal(err)
	}
	r, err := m.Allocate("lab", "owner")
	if got := fmt.Sprint(r.OK, r.Preempted, err); got != "true [first] <nil>" {
		t.Errorf("an owner claims its quota: %s, want the oldest sharer evicted, whose MinRunTime is over", got)
	}
}

func TestACheckpointEndsOnce(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(m *quota.Manager, outer, inner quota.Mark) error
		want error
	}{
		"no checkpoint":                {func(m *quota.Manager, _, _ quota.Mark) error { return m.Rollback(quota.Mark{}) }, quota.ErrStale},
		"the outer one before":         {func(m *quota.Manager, outer, _ quota.Mark) error { return m.Rollback(outer) }, quota.ErrNested},
		"the outer one is kept before": {func(m *quota.Manager, outer, _ quota.Mark) error { return m.Keep(outer) }, quota.ErrNested},
		"rolled back twice": {func(m *quota.Manager, _, inner quota.Mark) error {
			return errors.Join(m.Rollback(inner), m.Rollback(inner))
		}, quota.ErrStale},
		"kept, then rolled back": {func(m *quota.Manager, _, inner quota.Mark) error {
			return errors.Join(m.Keep(inner), m.Rollback(inner))
		}, quota.ErrStale},
		"in the order of a stack": {func(m *quota.Manager, outer, inner quota.Mark) error {
			return errors.Join(m.Keep(inner), m.Rollback(outer))
		}, nil},
		"a tree was updated": {func(m *quota.Manager, _, inner quota.Mark) error { m.UpdateAll(); return m.Rollback(inner) }, quota.ErrStale},
		"a consumer was removed": {func(m *quota.Manager, _, inner quota.Mark) error {
			return errors.Join(m.RemoveConsumer("idle"), m.Rollback(inner))
		}, quota.ErrStale},
		"a tree came": {func(m *quota.Manager, _, inner quota.Mark) error {
			_, err := m.AddTree(quota.TreeSpec{Name: "new"})
			return errors.Join(err, m.Keep(inner))
		}, quota.ErrStale},
		"a try is older than the inner": {func(m *quota.Manager, _, _ quota.Mark) error { return m.UndoAllocate("lab", "tried") }, quota.ErrNoTry},
	} {
		t.Run(name, func(t *testing.T) {
			m := lab(quota.Options{}, map[string]quota.NodeSpec{"all": {Quota: gpus(2)}})
			for _, id := range []string{"tried", "idle"} {
				if err := m.AddConsumer(quota.ConsumerSpec{ID: id, Demands: []quota.Demand{{Tree: "lab", Group: "all", Request: gpus(1)}}}); err != nil {
					t.Fatal(err)
				}
			}
			outer := m.Checkpoint()
			if _, err := m.TryAllocate("lab", "tried"); err != nil {
				t.Fatal(err)
			}
			inner := m.Checkpoint()
			if err := c.do(m, outer, inner); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if err := m.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}
