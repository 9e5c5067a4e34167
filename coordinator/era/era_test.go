package era_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/era"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/resource"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// world is a store with a backup.
type world struct {
	t       testing.TB
	db      *mem.Store // keeps the database
	s       *mem.Store // a client without a past
	written int
}

func newWorld(t testing.TB) *world {
	db := mem.Open(mem.Options{})
	t.Cleanup(func() { db.Close() })
	return &world{t: t, db: db, s: db.Connect(mem.Options{})}
}

// write writes a key in a revision.
func (w *world) write(key string) record.KV {
	w.written++
	value := record.MustEncode(record.Term{ID: fmt.Sprint("c", w.written)})
	done, err := w.s.Txn(w.t.Context(), record.Txn{Then: []record.Op{record.Put(key, value)}})
	if err != nil || !done.Succeeded {
		w.t.Fatalf("write %s: %v, %v", key, done, err)
	}
	return record.KV{Key: key, Value: value, ModRev: done.Revision, CreateRev: done.Revision}
}

// knows is a Known of the present: of the last write and a term.
func knows(last, term record.KV) era.Known {
	return era.Known{
		Revision: last.ModRev, Epoch: resource.Epoch(term.CreateRev), Mark: strings.TrimPrefix(term.Key, record.TermsPrefix),
		Anchor: era.Anchor{Key: last.Key, Revision: last.ModRev, Hash: era.HashOf(last.Value)},
	}
}

// restore puts the store back; clients begin anew.
func (w *world) restore(b mem.Backup) {
	w.db.Restore(b)
	w.s = w.db.Connect(mem.Options{})
}

func (w *world) contradiction(k era.Known) string {
	why, _, _, err := era.Contradiction(w.t.Context(), w.s, k)
	if err != nil {
		w.t.Fatal(err)
	}
	return why
}

// TestEachLossContradictsWhatWasKnown: at every distance of the backup, and after any
// number of writes since.
func TestEachLossContradictsWhatWasKnown(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t)
		term := w.write(record.TermKey("first"))
		for range rapid.IntRange(0, 3).Draw(r, "writes before the backup") {
			w.write(record.JobKey("ml", "a"))
		}
		b := w.db.Backup()
		last := term
		lost := rapid.IntRange(0, 4).Draw(r, "writes after it")
		for i := range lost {
			if rapid.Bool().Draw(r, "elects") {
				term = w.write(record.TermKey(fmt.Sprint("lost", i)))
				last = term
			} else {
				last = w.write(record.JobKey("ml", "a"))
			}
		}
		k := knows(last, term)
		if why := w.contradiction(k); why != "" {
			r.Fatalf("before the restoration: %s", why)
		}
		w.restore(b)
		for i := range rapid.IntRange(0, 6).Draw(r, "writes after the restoration") {
			w.write(record.TermKey(fmt.Sprint("new", i)))
		}
		if why := w.contradiction(k); (why != "") != (lost > 0) {
			r.Fatalf("%d writes are lost, and the contradiction is %q", lost, why)
		}
	})
}

func TestContradictions(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(w *world, b mem.Backup, k era.Known) era.Known
		want string
	}{
		"nothing is lost":          {func(_ *world, _ mem.Backup, k era.Known) era.Known { return k }, ""},
		"who knows nothing is not": {func(w *world, b mem.Backup, _ era.Known) era.Known { w.restore(b); return era.Known{} }, ""},
		"one revision": {func(w *world, b mem.Backup, k era.Known) era.Known {
			w.restore(b)
			return era.Known{Revision: k.Revision}
		}, "was at revision"},
		"the newest revision that is left": {func(w *world, b mem.Backup, k era.Known) era.Known {
			w.restore(b)
			return era.Known{Revision: k.Revision - 1}
		}, ""},
		"a term, and the store has grown": {func(w *world, b mem.Backup, k era.Known) era.Known {
			term := w.write(record.TermKey("lost"))
			w.restore(b)
			w.write(record.TermKey("x"))
			w.write(record.TermKey("y"))
			return era.Known{Epoch: resource.Epoch(term.CreateRev), Mark: "lost"}
		}, "no term of epoch"},
		"a write of the same key and revision with another value": {func(w *world, b mem.Backup, k era.Known) era.Known {
			w.restore(b)
			w.write(k.Anchor.Key)
			return era.Known{Anchor: k.Anchor}
		}, "does not have what"},
		"a record that was there at a revision": {func(w *world, b mem.Backup, k era.Known) era.Known {
			w.restore(b)
			at := w.write(record.JobKey("ml", "other"))
			return era.Known{Anchor: era.Anchor{Key: record.TxKey("tx"), Revision: at.ModRev}}
		}, "does not have what"},
		"a record that is there, later": {func(w *world, _ mem.Backup, k era.Known) era.Known {
			w.write(record.TxKey("tx"))
			at := w.write(record.JobKey("ml", "other"))
			return era.Known{Anchor: era.Anchor{Key: record.TxKey("tx"), Revision: at.ModRev}}
		}, ""},
		"what was compacted is not known": {func(w *world, _ mem.Backup, k era.Known) era.Known {
			last := w.write(record.JobKey("ml", "other"))
			if err := w.s.Compact(w.t.Context(), last.ModRev); err != nil {
				w.t.Fatal(err)
			}
			return era.Known{Anchor: era.Anchor{Key: "/registry/gone", Revision: k.Anchor.Revision}}
		}, ""},
		"a restoration that was noticed explains the loss": {func(w *world, b mem.Backup, k era.Known) era.Known {
			w.restore(b)
			if _, err := era.Declare(w.t.Context(), w.s, record.Restored{}, record.Restored{Has: 1, By: "c2"}); err != nil {
				w.t.Fatal(err)
			}
			return k
		}, ""},
		"a restoration that was noticed is lost": {func(w *world, b mem.Backup, k era.Known) era.Known {
			r, err := era.Declare(w.t.Context(), w.s, record.Restored{}, record.Restored{Has: 1, By: "c2"})
			if err != nil {
				w.t.Fatal(err)
			}
			w.restore(b)
			return era.Known{Restored: r.Mark}
		}, "lost an earlier restoration"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			term := w.write(record.TermKey("first"))
			b := w.db.Backup()
			k := c.do(w, b, knows(w.write(record.JobKey("ml", "a")), term))
			if got := w.contradiction(k); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("contradiction %q, want %q", got, c.want)
			}
		})
	}
}

// TestTermsThatWereForgottenAreNoLoss: the store keeps the newest terms alone.
func TestTermsThatWereForgottenAreNoLoss(t *testing.T) {
	w := newWorld(t)
	for i := range store.KeptTerms {
		w.write(record.TermKey(fmt.Sprint("t", i)))
	}
	if why := w.contradiction(era.Known{Epoch: 1, Mark: "forgotten"}); why != "" {
		t.Errorf("a forgotten term: %s", why)
	}
	if why := w.contradiction(era.Known{Epoch: 2, Mark: "other"}); why == "" {
		t.Error("the epoch of the oldest term that is kept has another mark, and that is no contradiction")
	}
}

// TestARestorationIsDeclaredOnce: also by two witnesses of a loss.
func TestARestorationIsDeclaredOnce(t *testing.T) {
	w := newWorld(t)
	first, err := era.Declare(t.Context(), w.s, record.Restored{}, record.Restored{Has: 5, Had: 6, By: "c1"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := era.Declare(t.Context(), w.s, record.Restored{}, record.Restored{Has: 7, Had: 9, By: "c2"})
	if diff := cmp.Diff(first, second); err != nil || diff != "" {
		t.Errorf("the second witness: %v\n%s", err, diff)
	}
	third, err := era.Declare(t.Context(), w.s, first, record.Restored{Has: 8, By: "c2"})
	if err != nil || third.Mark == first.Mark || third.Has != 8 {
		t.Errorf("another loss is declared as %+v, %v", third, err)
	}
	kvs, _, err := w.s.Range(t.Context(), record.RestoredPrefix, store.RangeOptions{})
	if err != nil || len(kvs) != 2 || kvs[0].Key != record.RestoredKey(5) {
		t.Errorf("restorations in the store: %v, %v", kvs, err)
	}
}

// TestADeclarationOfUnknownOutcomeIsLookedUp: neither lost nor made twice.
func TestADeclarationOfUnknownOutcomeIsLookedUp(t *testing.T) {
	for _, landed := range []bool{true, false} {
		w := newWorld(t)
		once := true
		s := w.db.Connect(mem.Options{})
		r, err := era.Declare(t.Context(), doubtful{s, &once, landed}, record.Restored{}, record.Restored{Has: 5, By: "c1"})
		kv, found, _, getErr := w.s.Get(t.Context(), record.LastRestoredKey)
		if err != nil || getErr != nil || !found || once {
			t.Fatalf("landed %t: %+v, %v, %v", landed, r, err, getErr)
		}
		last, err := record.Decode[record.Restored](kv.Key, kv.Value)
		if diff := cmp.Diff(last, r); err != nil || diff != "" {
			t.Errorf("landed %t: %v\n%s", landed, err, diff)
		}
	}
}

// doubtful is a store whose first Txn has no answer.
type doubtful struct {
	store.KVStore
	once   *bool
	landed bool
}

func (d doubtful) Txn(ctx context.Context, t record.Txn) (record.TxnResult, error) {
	if !*d.once {
		return d.KVStore.Txn(ctx, t)
	}
	if *d.once = false; d.landed {
		if _, err := d.KVStore.Txn(ctx, t); err != nil {
			return record.TxnResult{}, err
		}
	}
	return record.TxnResult{}, record.ErrUnknownOutcome
}

// TestWhoseWordCounts: an agent's word counts for all nodes only where the coordinator
// knows of no past.
func TestWhoseWordCounts(t *testing.T) {
	for _, decisive := range []bool{true, false} {
		w := newWorld(t)
		restored, lost, err := era.Judge(t.Context(), w.s, "n1", era.Known{Revision: 99}, decisive)
		if err != nil || lost == "" || (restored.By == "node n1") != decisive {
			t.Errorf("decisive %t: %+v, %q, %v", decisive, restored, lost, err)
		}
	}
}

// life is a coordinator's process over a data folder.
func life(t *testing.T, w *world, dir string) *era.Keeper {
	t.Helper()
	k, err := era.Open(dir, "c", "c1", quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Start(t.Context(), w.s); err != nil {
		t.Fatal(err)
	}
	return k
}

// follows has a keeper see all keys of the store.
func follows(t *testing.T, w *world, k *era.Keeper) {
	t.Helper()
	kvs, rev, err := w.s.Range(t.Context(), record.Root, store.RangeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range kvs {
		k.Saw(&kv)
	}
	k.Moved(rev)
}

func lastRestored(t *testing.T, w *world) record.Restored {
	t.Helper()
	_, _, r, err := era.Contradiction(t.Context(), w.s, era.Known{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestACoordinatorsLives: a process compares the file of the process before, and declares
// each loss once.
func TestACoordinatorsLives(t *testing.T) {
	w, dir := newWorld(t), t.TempDir()
	w.write(record.TermKey("first"))
	k := life(t, w, dir)
	if !k.Blind() {
		t.Error("a coordinator without a file knows of a past")
	}
	b := w.db.Backup()
	w.write(record.JobKey("ml", "a"))
	follows(t, w, k)
	if epoch, mark := k.Term(); epoch != 2 || mark != "first" {
		t.Errorf("the newest term is %q of epoch %d", mark, epoch)
	}
	for range 2 {
		if err := k.Save(); err != nil {
			t.Fatal(err)
		}
	}
	if k = life(t, w, dir); k.Blind() || lastRestored(t, w).Mark != "" {
		t.Errorf("an ordinary restart: blind %t, %+v", k.Blind(), lastRestored(t, w))
	}
	w.restore(b)
	w.write(record.JobKey("ml", "b")) // by a coordinator without a past
	w.write(record.JobKey("ml", "b"))
	k = life(t, w, dir)
	first := lastRestored(t, w)
	if first.By != "coordinator c1" || first.Had != 3 || first.Has != 4 {
		t.Fatalf("declared as %+v", first)
	}
	follows(t, w, k)
	if err := k.Save(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if life(t, w, dir); lastRestored(t, w) != first {
			t.Errorf("declared once more as %+v", lastRestored(t, w))
		}
	}
}

// TestALossWhileACoordinatorRuns: the file does not change before the declaration.
func TestALossWhileACoordinatorRuns(t *testing.T) {
	w, dir := newWorld(t), t.TempDir()
	k := life(t, w, dir)
	w.write(record.JobKey("ml", "a"))
	follows(t, w, k)
	if err := errors.Join(k.Save(), k.Settle(t.Context(), w.s)); err != nil || lastRestored(t, w).Mark != "" {
		t.Fatalf("nothing is lost: %v", err)
	}
	before, err := os.ReadFile(filepath.Join(dir, era.FileName))
	if err != nil {
		t.Fatal(err)
	}
	k.WentBack(&record.WentBackError{Had: 9, Has: 2})
	w.write(record.JobKey("ml", "b"))
	follows(t, w, k)
	if err := k.Save(); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(filepath.Join(dir, era.FileName)); err != nil || string(now) != string(before) {
		t.Errorf("the file changed before the loss was declared: %s, %v", now, err)
	}
	if err := k.Settle(t.Context(), w.s); err != nil {
		t.Fatal(err)
	}
	r := lastRestored(t, w)
	if r.By != "coordinator c1" || r.Had != 9 || r.Has != 2 {
		t.Errorf("declared as %+v", r)
	}
	if err := errors.Join(k.Save(), k.Settle(t.Context(), w.s)); err != nil || lastRestored(t, w) != r {
		t.Errorf("declared twice: %+v, %v", lastRestored(t, w), err)
	}
	if life(t, w, dir); lastRestored(t, w) != r {
		t.Errorf("declared once more at the next start: %+v", lastRestored(t, w))
	}
}

func TestFilesThatAreNotReadAreNamed(t *testing.T) {
	for name, c := range map[string]struct{ content, want string }{
		"damaged":         {"{", "delete the file"},
		"a later version": {`{"v":2}`, "version 2 is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, era.FileName), []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := era.Open(dir, "c", "c1", quiet); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, era.FileName), []byte(`{"v":1,"cluster":"other","revision":99}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if k, err := era.Open(dir, "c", "c1", quiet); err != nil || !k.Blind() {
		t.Errorf("the file of another cluster counts: %v", err)
	}
}

func TestNoKeeperKeepsNothing(t *testing.T) {
	var k *era.Keeper
	k.Saw(&record.KV{})
	k.Moved(3)
	k.WentBack(&record.WentBackError{})
	k.Run(t.Context())
	if err := errors.Join(k.Start(t.Context(), nil), k.Settle(t.Context(), nil), k.Save()); err != nil || k.Blind() {
		t.Errorf("error %v, blind %t", err, k.Blind())
	}
}
