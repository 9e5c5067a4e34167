package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

func testPut(t *testing.T, f *fixture) {
	if _, found := f.get(t, "a"); found {
		t.Fatal("an absent key was found")
	}
	first := f.put(t, "a", "one")
	second := f.put(t, "a", "two")
	kv, found := f.get(t, "a")
	diff(t, "key", record.KV{Key: f.key("a"), Value: []byte("two"), CreateRev: first, ModRev: second}, kv)
	if !found || second <= first {
		t.Errorf("found %v, revisions %d then %d", found, first, second)
	}
	f.must(t, record.Delete(f.key("a")))
	third := f.put(t, "a", "")
	kv, _ = f.get(t, "a")
	if kv.CreateRev != third || len(kv.Value) != 0 {
		t.Errorf("created anew at %d with an empty value: got %+v", third, kv)
	}
}

func testCompares(t *testing.T, f *fixture) {
	created := f.put(t, "a", "one")
	modified := f.put(t, "a", "two")
	a, none := f.key("a"), f.key("none")
	cases := map[string]struct {
		compares []record.Compare
		want     bool
	}{
		"absent holds for a key that is absent":               {[]record.Compare{record.Absent(none)}, true},
		"absent fails for a key that exists":                  {[]record.Compare{record.Absent(a)}, false},
		"the last revision holds":                             {[]record.Compare{record.ModRevIs(a, modified)}, true},
		"an earlier revision fails":                           {[]record.Compare{record.ModRevIs(a, created)}, false},
		"the create revision holds":                           {[]record.Compare{record.CreateRevIs(a, created)}, true},
		"another create revision fails":                       {[]record.Compare{record.CreateRevIs(a, modified)}, false},
		"revision 0 means absent, by modification":            {[]record.Compare{record.ModRevIs(none, 0)}, true},
		"revision 0 means absent, by creation":                {[]record.Compare{record.CreateRevIs(none, 0)}, true},
		"a revision fails for a key that is absent":           {[]record.Compare{record.ModRevIs(none, modified)}, false},
		"one failing compare of three fails the transaction":  {[]record.Compare{record.Absent(none), record.Absent(a), record.CreateRevIs(a, created)}, false},
		"several compares of one key hold together":           {[]record.Compare{record.ModRevIs(a, modified), record.CreateRevIs(a, created)}, true},
		"no compare always holds":                             {nil, true},
		"a compare looks at the state before the transaction": {[]record.Compare{record.Absent(f.key("written"))}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			defer f.must(t, record.Delete(f.key("written")))
			if got := f.try(t, "written", c.compares...); got != c.want {
				t.Errorf("succeeded %v, want %v", got, c.want)
			}
			if _, found := f.get(t, "written"); found != c.want {
				t.Errorf("written %v, want %v", found, c.want)
			}
		})
	}
}

func testOneRevision(t *testing.T, f *fixture) {
	before := f.put(t, "gone", "x")
	rev := f.must(t, record.Put(f.key("a"), []byte("1")), record.Put(f.key("b"), []byte("2")), record.Delete(f.key("gone")))
	a, _ := f.get(t, "a")
	b, _ := f.get(t, "b")
	_, found := f.get(t, "gone")
	if rev != before+1 || a.ModRev != rev || b.CreateRev != rev || found {
		t.Errorf("revision %d after %d, a %+v, b %+v, gone found %v", rev, before, a, b, found)
	}
}

func testNoChange(t *testing.T, f *fixture) {
	rev := f.put(t, "a", "x")
	if got := f.must(t, record.Delete(f.key("none"))); got != rev {
		t.Errorf("deleting nothing: revision %d, want %d", got, rev)
	}
	r, err := f.s.Txn(f.ctx, record.Txn{If: []record.Compare{record.Absent(f.key("a"))}, Then: []record.Op{record.Put(f.key("a"), nil)}})
	if err != nil || r.Succeeded || r.Revision != rev {
		t.Errorf("failed compare: %+v, %v; want the present revision %d", r, err, rev)
	}
	r, err = f.s.Txn(f.ctx, record.Txn{If: []record.Compare{record.ModRevIs(f.key("a"), rev)}})
	if err != nil || !r.Succeeded || r.Revision != rev {
		t.Errorf("compare alone: %+v, %v; want success at revision %d", r, err, rev)
	}
}

func testRefusals(t *testing.T, f *fixture) {
	put := record.Put(f.key("a"), []byte("x"))
	many := make([]record.Op, f.s.MaxTxnOps()+1)
	for i := range many {
		many[i] = record.Put(f.key(strconv.Itoa(i)), nil)
	}
	var tooMany *record.TooManyOpsError
	var tooLarge *record.TooLargeError
	cases := map[string]struct {
		txn  record.Txn
		want func(error) bool
	}{
		"too many operations":    {record.Txn{Then: many}, func(err error) bool { return errors.As(err, &tooMany) && tooMany.Ops == len(many) }},
		"one key put twice":      {record.Txn{Then: []record.Op{put, put}}, func(err error) bool { return errors.Is(err, record.ErrDuplicateKey) }},
		"a lease that never was": {record.Txn{Then: []record.Op{put, record.PutLeased(f.key("b"), nil, 4711)}}, func(err error) bool { return errors.Is(err, record.ErrLeaseGone) }},
		"an empty key":           {record.Txn{Then: []record.Op{put, record.Delete("")}}, nil},
		"a compare of nothing":   {record.Txn{If: []record.Compare{{Key: f.key("a")}}, Then: []record.Op{put}}, nil},
		"64 MiB": {
			record.Txn{Then: []record.Op{put, record.Put(f.key("b"), bytes.Repeat([]byte("x"), 64<<20))}},
			func(err error) bool { return errors.As(err, &tooLarge) },
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := f.s.Txn(f.ctx, c.txn)
			if err == nil || errors.Is(err, record.ErrUnknownOutcome) || c.want != nil && !c.want(err) {
				t.Errorf("got %v", err)
			}
		})
	}
	if names := f.names(t, "", store.RangeOptions{}); len(names) > 0 {
		t.Errorf("refused transactions wrote %v", names)
	}
}

func testLimit(t *testing.T, f *fixture) {
	txn := record.Txn{}
	for i := range f.s.MaxTxnOps() {
		key := f.key(strconv.Itoa(i))
		txn.If = append(txn.If, record.Absent(key))
		txn.Then = append(txn.Then, record.Put(key, nil))
	}
	if r, err := f.s.Txn(f.ctx, txn); err != nil || !r.Succeeded {
		t.Fatalf("%d operations: %+v, %v", txn.Ops(), r, err)
	}
	if n := len(f.names(t, "", store.RangeOptions{})); n != txn.Ops() {
		t.Errorf("%d keys written, want %d", n, txn.Ops())
	}
}

func testCanceled(t *testing.T, f *fixture) {
	ctx, cancel := context.WithCancel(f.ctx)
	cancel()
	_, err := f.s.Txn(ctx, record.Txn{Then: []record.Op{record.Put(f.key("a"), nil)}})
	if !errors.Is(err, context.Canceled) || errors.Is(err, record.ErrUnknownOutcome) {
		t.Errorf("got %v, want a plain cancellation", err)
	}
	if _, found := f.get(t, "a"); found {
		t.Error("it was written")
	}
}

func testIncrements(t *testing.T, f *fixture) {
	const workers, each = 4, 10
	f.put(t, "n", "0")
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for done := 0; done < each; {
				kv, _, _, err := f.s.Get(f.ctx, f.key("n"))
				if err != nil {
					t.Error(err)
					return
				}
				n, _ := strconv.Atoi(string(kv.Value))
				r, err := f.s.Txn(f.ctx, record.Txn{
					If:   []record.Compare{record.ModRevIs(kv.Key, kv.ModRev)},
					Then: []record.Op{record.Put(kv.Key, []byte(strconv.Itoa(n+1)))},
				})
				if err != nil {
					t.Error(err)
					return
				}
				if r.Succeeded {
					done++
				}
			}
		})
	}
	wg.Wait()
	kv, _ := f.get(t, "n")
	diff(t, "sum", strconv.Itoa(workers*each), string(kv.Value))
}

// testModel draws transactions over few keys and compares every answer, the
// state after each and the history with a plain map.
func testModel(t *testing.T, f *fixture) {
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		root := f.key(fmt.Sprintf("%d/", round))
		model := map[string]record.KV{}
		history := map[resource.Revision]map[string]record.KV{}
		_, _, rev, err := f.s.Get(f.ctx, root)
		if err != nil {
			rt.Fatal(err)
		}
		key := rapid.Map(rapid.SampledFrom([]string{"a", "b", "c", "b/x"}), func(s string) string { return root + s })
		for range rapid.IntRange(1, 12).Draw(rt, "transactions") {
			txn, holds := record.Txn{}, true
			for _, k := range rapid.SliceOfNDistinct(key, 0, 2, rapid.ID).Draw(rt, "compared") {
				want := resource.Revision(0)
				if rapid.Bool().Draw(rt, "right") {
					want = model[k].ModRev
				}
				holds = holds && want == model[k].ModRev
				txn.If = append(txn.If, record.ModRevIs(k, want))
			}
			after, changed := clone(model), false
			for _, k := range rapid.SliceOfNDistinct(key, 0, 3, rapid.ID).Draw(rt, "written") {
				_, exists := model[k]
				if rapid.Bool().Draw(rt, "delete") {
					txn.Then = append(txn.Then, record.Delete(k))
					delete(after, k)
					changed = changed || exists
					continue
				}
				value := rapid.SliceOfN(rapid.Byte(), 1, 4).Draw(rt, "value")
				txn.Then = append(txn.Then, record.Put(k, value))
				kv := record.KV{Key: k, Value: value, CreateRev: model[k].CreateRev, ModRev: rev + 1}
				if !exists {
					kv.CreateRev = rev + 1
				}
				after[k], changed = kv, true
			}
			if holds && changed {
				rev++
				model = after
			}
			result, err := f.s.Txn(f.ctx, txn)
			if err != nil {
				rt.Fatal(err)
			}
			if want := (record.TxnResult{Succeeded: holds, Revision: rev}); result != want {
				rt.Fatalf("%+v: got %+v, want %+v", txn, result, want)
			}
			history[rev] = clone(model)
		}
		for at, want := range history {
			kvs, _, err := f.s.Range(f.ctx, root, store.RangeOptions{AtRevision: at})
			if err != nil {
				rt.Fatal(err)
			}
			got := map[string]record.KV{}
			for _, kv := range kvs {
				got[kv.Key] = kv
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				rt.Fatalf("at revision %d: got %v, want %v", at, got, want)
			}
		}
	})
}

func clone(m map[string]record.KV) map[string]record.KV {
	out := make(map[string]record.KV, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}
