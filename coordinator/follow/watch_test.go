package follow

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"context"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/objects/objectstest"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/resource"
)

// coordinator is a follower that can be killed.
type coordinator struct {
	*Follower
	kill context.CancelFunc
}

func startCoordinator(s store.Store) *coordinator {
	f := New(options(s, slog.New(slog.DiscardHandler)))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { f.Run(ctx); close(done) }()
	return &coordinator{f, func() { cancel(); <-done }}
}

// TestWatchesMissNothing: whatever changes, whoever watches and whichever
// coordinators die, the changes that a reader gets make up the list, without a
// gap or a duplicate; and every coordinator numbers them alike.
func TestWatchesMissNothing(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { missNothing(t, seed, 60) })
		})
	}
}

func missNothing(t *testing.T, seed uint64, rounds int) {
	random := rand.New(rand.NewPCG(seed, 7))
	back := mem.Open(mem.Options{})
	world := objectstest.New(seed, "a", "a-b", "b")
	alive := []*coordinator{startCoordinator(back), startCoordinator(back)}
	defer func() {
		for _, c := range alive {
			c.kill()
		}
	}()
	var readers []*reader
	numbers := map[objects.ID]string{} // the events by their ids, whoever gave them
	for range rounds {
		for range random.IntN(12) {
			if r, err := back.Txn(t.Context(), record.Txn{Then: world.Change()}); err != nil || !r.Succeeded {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		switch random.IntN(6) {
		case 0:
			at := random.IntN(len(alive))
			alive[at].kill()
			for _, r := range readers {
				if r.watch != nil && r.watch.f == alive[at].Follower {
					r.watch.Close()
					r.watch = nil
				}
			}
			alive[at] = startCoordinator(back)
			synctest.Wait()
		case 1, 2:
			selects := []func(any) bool{everything, teamOf("t1"), running}[random.IntN(3)]
			readers = append(readers, &reader{
				Kind: objects.Kind(random.IntN(6)), namespace: []string{"", "a", "b"}[random.IntN(3)], selects: selects, known: map[string]string{},
			})
		}
		for _, r := range readers {
			if random.IntN(3) > 0 {
				continue
			}
			if r.watch == nil && random.IntN(4) == 0 && len(r.ids) > 2 && r.at == objects.AllOf(r.at.Revision) {
				r.at = objects.AllOf(r.at.Revision)
			}
			f := alive[random.IntN(len(alive))].Follower
			if r.watch != nil {
				f = r.watch.f
			}
			r.take(t, f)
			view, err := f.View()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(r.list(view), r.known); diff != "" {
				t.Fatalf("%s in %q (-list +watch):\n%s", r.Kind, r.namespace, diff)
			}
			if random.IntN(3) == 0 { // the client goes away, perhaps in the middle of a revision
				r.watch.Close()
				r.watch = nil
			}
		}
	}
	for _, c := range alive {
		for k := range objects.Kind(6) {
			for _, e := range c.history(t, k) {
				text := fmt.Sprint(e.Type, " ", e.Name, " ", bare(e.Object))
				if before, known := numbers[e.ID]; known && before != text {
					t.Errorf("%s is %s here and %s there", e.ID, text, before)
				}
				numbers[e.ID] = text
			}
		}
	}
	for _, r := range readers {
		if r.watch != nil {
			r.watch.Close()
		}
	}
}

// history is all changes of a kind that a coordinator can show, from the
// beginning of the store on.
func (c *coordinator) history(t *testing.T, k objects.Kind) (all []*objects.Event) {
	t.Helper()
	w, err := c.Watch(t.Context(), objects.WatchOptions{Kind: k, After: objects.AllOf(1)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for {
		changes, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, changes.Events...)
		if changes.Bookmark.Revision > 0 {
			return all
		}
	}
}

// TestAWatchGoesOnInTheMiddleOfARevision: a client that was cut off between two
// events of one revision gets the second, at a coordinator that is younger too.
func TestAWatchGoesOnInTheMiddleOfARevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := mem.Open(mem.Options{})
		world := objectstest.New(1, "a")
		old := startCoordinator(back)
		defer old.kill()
		synctest.Wait()
		var at resource.Revision
		var both []objects.ID
		w, err := old.Watch(t.Context(), objects.WatchOptions{Kind: objects.Allocations, Cached: true})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		for len(both) < 2 {
			if _, err := back.Txn(t.Context(), record.Txn{Then: world.Change()}); err != nil {
				t.Fatal(err)
			}
			c, err := w.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			both = both[:0]
			for _, e := range c.Events {
				if e.ID.Revision > at {
					at, both = e.ID.Revision, both[:0]
				}
				both = append(both, e.ID)
			}
		}
		young := startCoordinator(back)
		defer young.kill()
		synctest.Wait()
		for name, c := range map[string]*coordinator{"the same coordinator": old, "a younger one": young} {
			w, err := c.Watch(t.Context(), objects.WatchOptions{Kind: objects.Allocations, After: both[0]})
			if err != nil {
				t.Fatal(err)
			}
			changes, err := w.Next(t.Context())
			if err != nil || len(changes.Events) == 0 || changes.Events[0].ID != both[1] {
				t.Errorf("%s goes on after %s with %+v, %v; want %s", name, both[0], changes.Events, err, both[1])
			}
			w.Close()
		}
	})
}

func TestWhereAWatchCannotGoOn(t *testing.T) {
	for name, c := range map[string]struct {
		after objects.ID
		spoil func(*testing.T, *mem.Store)
		want  string
	}{
		"a place that was compacted": {objects.AllOf(2), func(t *testing.T, s *mem.Store) {
			if err := s.Compact(t.Context(), 9); err != nil {
				t.Fatal(err)
			}
		}, "the store keeps changes from revision 9 on, and 2 is older: read anew and watch from there"},
		"a place that the store has not reached": {objects.AllOf(900), func(*testing.T, *mem.Store) {}, "the store is at revision 20 and not yet at 900"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				back := mem.Open(mem.Options{})
				world := objectstest.New(3, "a")
				for at := resource.Revision(0); at < 20; {
					r, err := back.Txn(t.Context(), record.Txn{Then: world.Change()})
					if err != nil {
						t.Fatal(err)
					}
					at = r.Revision
				}
				f := startCoordinator(back)
				defer f.kill()
				synctest.Wait()
				c.spoil(t, back)
				w, err := f.Watch(t.Context(), objects.WatchOptions{Kind: objects.Allocations, After: c.after})
				if err == nil {
					_, err = w.Next(t.Context())
					w.Close()
				}
				var gone *objects.GoneError
				if !errors.As(err, &gone) || !bytes.Contains([]byte(err.Error()), []byte(c.want)) {
					t.Errorf("%v, want %q", err, c.want)
				}
			})
		})
	}
}

// TestAReaderThatIsTooSlowIsTold: changes that the history has dropped are no
// silent gap.
func TestAReaderThatIsTooSlowIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := mem.Open(mem.Options{})
		f := startCoordinator(back)
		defer f.kill()
		putUnit(t, back, "a")
		synctest.Wait()
		w, err := f.Watch(t.Context(), objects.WatchOptions{Kind: objects.Allocations})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		for range 2 {
			if _, err := w.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for range mostEvents + 1 {
			putUnit(t, back, "a")
		}
		synctest.Wait()
		var gone *objects.GoneError
		if _, err := w.Next(t.Context()); !errors.As(err, &gone) {
			t.Errorf("%v, want that it was too slow", err)
		}
	})
}

// TestAListGoesOnAtItsRevision: a view that was kept, and one that is made anew
// of the store's past, show what the first page has shown.
func TestAListGoesOnAtItsRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := mem.Open(mem.Options{})
		world := objectstest.New(5, "a", "b")
		f := startCoordinator(back)
		defer f.kill()
		change := func() {
			for range 40 {
				if _, err := back.Txn(t.Context(), record.Txn{Then: world.Change()}); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
		}
		change()
		first, err := f.Fresh(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		content := func(v *objects.View) (all []string) {
			for k := range objects.Kind(6) {
				for i := range v.After(k, "", objects.Name{}) {
					o := i.Object()
					all = append(all, string(objects.Encode(o)))
				}
			}
			return all
		}
		want := content(first)
		f.Keep(first)
		change()
		for _, wait := range []time.Duration{0, 2 * keptFor} {
			<-time.NewTimer(wait).C
			again, err := f.ViewAt(t.Context(), first.Revision())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, content(again)); diff != "" {
				t.Errorf("after %v (-first +again):\n%s", wait, diff)
			}
		}
		if err := back.Compact(t.Context(), first.Revision()+1); err != nil {
			t.Fatal(err)
		}
		var gone *objects.GoneError
		if _, err := f.ViewAt(t.Context(), first.Revision()); !errors.As(err, &gone) {
			t.Errorf("after compaction: %v", err)
		}
	})
}

// TestPagesAreInTheOrderOfNamespaceAndName: also where one namespace begins with
// the name of another.
func TestPagesAreInTheOrderOfNamespaceAndName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := mem.Open(mem.Options{})
		world := objectstest.New(9, "a-b", "a", "ab")
		f := startCoordinator(back)
		defer f.kill()
		for range 60 {
			if _, err := back.Txn(t.Context(), record.Txn{Then: world.CreateAllocation()}); err != nil && len(world.Namespaces) == 0 {
				t.Fatal(err)
			}
		}
		v, err := f.Fresh(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var all, paged []objects.Name
		for i := range v.After(objects.Allocations, "", objects.Name{}) {
			all = append(all, i.Name)
		}
		if !slices.IsSortedFunc(all, func(a, b objects.Name) int { return cmpNames(a, b) }) || len(all) < 20 {
			t.Errorf("order: %v", all)
		}
		for last := (objects.Name{}); ; {
			n := len(paged)
			for i := range v.After(objects.Allocations, "", last) {
				if len(paged) == n+7 {
					break
				}
				paged = append(paged, i.Name)
			}
			if len(paged) == n {
				break
			}
			last = paged[len(paged)-1]
		}
		if !slices.Equal(all, paged) {
			t.Errorf("pages %v, want %v", paged, all)
		}
		of := map[string]int{}
		for _, n := range all {
			of[n.Namespace]++
		}
		for _, namespace := range slices.Sorted(maps.Keys(of)) {
			n := 0
			for range v.After(objects.Allocations, namespace, objects.Name{}) {
				n++
			}
			if n != of[namespace] {
				t.Errorf("%d in %s, want %d", n, namespace, of[namespace])
			}
		}
	})
}

func cmpNames(a, b objects.Name) int {
	if a.Namespace != b.Namespace {
		if a.Namespace < b.Namespace {
			return -1
		}
		return 1
	}
	if a.Name < b.Name {
		return -1
	}
	return 1
}

// A watch that begins takes few bytes at a time, whatever the size of the objects.
func TestAWatchBeginsInSmallParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const documents, size = 40, 20 << 10
		back := mem.Open(mem.Options{})
		for i := range documents {
			unit := record.Unit{
				UID: resource.UnitUID(fmt.Sprint("uid-", i)), Kind: record.AllocUnit, Namespace: "ml", Name: fmt.Sprint("a", i), Tenant: "ml", Queue: "default", Phase: string(api.Pending), Members: 1,
				Document: fmt.Appendf(nil, `{"metadata":{"name":"a%d","annotations":{"note":%q}},"spec":{"resources":{"requests":{"cpu":"1"}}}}`, i, bytes.Repeat([]byte("x"), size)),
			}
			if _, err := back.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(unit.Path().Key(), record.MustEncode(unit))}}); err != nil {
				t.Fatal(err)
			}
		}
		f := startCoordinator(back)
		defer f.kill()
		synctest.Wait()
		w, err := f.Watch(t.Context(), objects.WatchOptions{Kind: objects.Allocations})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		for given := 0; ; {
			c, err := w.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			taken := 0
			for _, e := range c.Events {
				taken += len(e.JSON)
			}
			if given += len(c.Events); taken > mostInitial+2*size {
				t.Fatalf("%d objects of %d bytes come at a time, want at most %d bytes", len(c.Events), taken, mostInitial+2*size)
			}
			if c.Bookmark.Revision > 0 {
				if given != documents {
					t.Errorf("%d objects, want %d", given, documents)
				}
				return
			}
		}
	})
}
