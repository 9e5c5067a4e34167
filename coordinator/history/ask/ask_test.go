package ask_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/ask"
	"github.com/musterd/muster/coordinator/history/tally"
	"github.com/musterd/muster/coordinator/history/usage"
	"github.com/musterd/muster/coordinator/history/warehouse"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/postgres"
)

func TestMain(m *testing.M) { os.Exit(postgres.Main(m)) }

// start is the beginning of a day.
var start = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func at(hours float64) time.Time { return start.Add(time.Duration(hours * float64(time.Hour))) }

// both runs a test on each database with a batch in it.
func both(t *testing.T, b history.Batch, test func(t *testing.T, h *ask.History)) {
	for name, dsn := range map[string]func(t *testing.T) string{
		"PostgreSQL": func(t *testing.T) string { return postgres.Database(t) },
		"SQLite":     func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "history.db") },
	} {
		t.Run(name, func(t *testing.T) {
			w, err := warehouse.Open(t.Context(), dsn(t))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := w.Close(); err != nil {
					t.Error(err)
				}
			})
			prices, err := usage.NewPrices("USD", []usage.Price{
				{From: start, Slot: resource.GPU, Per: 1000, Hour: 2_000_000},
				{From: start, Slot: resource.GPU, Model: "H100", Per: 1000, Hour: 4_000_000},
				{From: start, Slot: resource.CPU, Per: 1000, Hour: 50_000},
			})
			if err == nil {
				err = tally.SetPrices(t.Context(), w, prices)
			}
			if err == nil {
				b.Upto = 1
				err = w.Write(t.Context(), b)
			}
			if err == nil {
				_, err = tally.Settle(t.Context(), w, at(24*31))
			}
			if err != nil {
				t.Fatal(err)
			}
			test(t, ask.Of(w))
		})
	}
}

// held are the slices of a member that holds an amount from one hour to another.
func held(tx, namespace, model string, slot resource.Name, amount int64, from, to float64) []history.Slice {
	g := history.Grant{
		Tx: resource.TxID(tx), Unit: resource.UnitUID("unit-" + tx), Namespace: namespace, Tenant: "ml", Committed: at(from), Ended: at(to),
		Members: []history.Member{{Node: "n", GPUModel: model, Allocated: resource.Vector{slot: amount}, Requested: resource.Vector{slot: amount}}},
	}
	return usage.Slices(g, at(1e4))
}

func TestTheUsageOfATenant(t *testing.T) {
	b := history.Batch{Slices: slices.Concat(
		held("a", "one", "H100", resource.GPU, 2000, 0, 60),    // over two days and a half
		held("b", "two", "A100", resource.GPU, 1000, 59, 59.5), // beside it for half an hour
		held("c", "one", "", resource.CPU, 1500, 10, 20),
		held("d", "one", "", resource.Memory, 1<<40, 10, 20),
	)}
	both(t, b, func(t *testing.T, h *ask.History) {
		for name, c := range map[string]struct {
			from, to float64
			want     ask.Tenant
		}{
			"all of it": {0, 100, ask.Tenant{
				Slots: map[resource.Name]ask.Slot{
					resource.GPU:    {Peak: 3000, Average: (2000*60 + 500) / 100},
					resource.CPU:    {Peak: 1500, Average: 1500 * 10 / 100},
					resource.Memory: {Peak: 1 << 40, Average: 1 << 40 / 10},
				},
				Costs: map[resource.Name]ask.Cost{resource.GPU: (2*60*4 + 1) * 10_000, resource.CPU: 15 * 500},
			}},
			"a day and parts of two": {23.5, 50.5, ask.Tenant{
				Slots: map[resource.Name]ask.Slot{resource.GPU: {Peak: 2000, Average: 2000 * 28 * 10 / 275}},
				Costs: map[resource.Name]ask.Cost{resource.GPU: 2 * 28 * 4 * 10_000}, // the hour of the end counts as a whole
			}},
			"before all": {-50, -20, ask.Tenant{Slots: map[resource.Name]ask.Slot{}, Costs: map[resource.Name]ask.Cost{}}},
		} {
			t.Run(name, func(t *testing.T) {
				got, err := h.Tenant(t.Context(), "ml", at(c.from), at(c.to))
				if err != nil {
					t.Fatal(err)
				}
				c.want.Currency = "USD"
				if d := gocmp.Diff(c.want, got, cmpopts.IgnoreFields(ask.Tenant{}, "From", "To")); d != "" {
					t.Errorf("(-want +got)\n%s", d)
				}
			})
		}
		if _, err := h.Tenant(t.Context(), "ml", at(10), at(9)); err == nil {
			t.Error("an end before the beginning is no error")
		}
	})
}

func TestTheSeriesOfASlot(t *testing.T) {
	b := history.Batch{Slices: slices.Concat(held("a", "one", "H100", resource.GPU, 2000, 1, 2.5), held("b", "one", "", resource.GPU, 1000, 26, 50))}
	both(t, b, func(t *testing.T, h *ask.History) {
		for step, want := range map[time.Duration][]ask.Point{
			time.Hour:      {{At: at(1), Peak: 2000, Average: 2000}, {At: at(2), Peak: 2000, Average: 1000}},
			24 * time.Hour: {{At: at(0), Peak: 2000, Average: 125}, {At: at(24), Peak: 1000, Average: 22_000 / 24}, {At: at(48), Peak: 1000, Average: 2000 / 24}},
		} {
			to := at(24)
			if step > time.Hour {
				to = at(100)
			}
			got, err := h.Series(t.Context(), "ml", resource.GPU, at(0), to, step)
			if d := gocmp.Diff(want, got); d != "" || err != nil {
				t.Errorf("step %s: %v (-want +got)\n%s", step, err, d)
			}
		}
	})
}

func TestWhatANamespaceHeld(t *testing.T) {
	b := history.Batch{
		Units:  []history.Unit{{UID: "unit-b", PriorityClass: "high", Revision: 1}},
		Slices: slices.Concat(held("a", "one", "H100", resource.GPU, 2000, 3, 50), held("b", "one", "", resource.GPU, 1000, 26, 50), held("c", "two", "", resource.GPU, 7000, 3, 50)),
		Quotas: []history.Quota{
			{Namespace: "one", Name: "q", Tenant: "ml", Slot: resource.GPU, Hard: 8000, Soft: resource.Unlimited, From: at(0), To: at(20), Revision: 1},
			{Namespace: "one", Name: "q", Tenant: "ml", Slot: resource.GPU, Hard: 16000, Soft: resource.Unlimited, From: at(20), Revision: 1},
		},
	}
	both(t, b, func(t *testing.T, h *ask.History) {
		for name, c := range map[string]struct {
			at   float64
			want ask.Held
		}{
			"before a change":              {10.25, ask.Held{At: at(10.25), Held: resource.Vector{resource.GPU: 2000}, Hard: resource.Vector{resource.GPU: 8000}}},
			"behind it":                    {30.25, ask.Held{At: at(30.25), Held: resource.Vector{resource.GPU: 3000}, Hard: resource.Vector{resource.GPU: 16000}}},
			"before the history began":     {-9, ask.Held{At: at(4), Held: resource.Vector{resource.GPU: 2000}, Hard: resource.Vector{resource.GPU: 8000}}},
			"when all of it is free again": {51, ask.Held{At: at(51), Held: resource.Vector{}, Hard: resource.Vector{resource.GPU: 16000}}},
		} {
			t.Run(name, func(t *testing.T) {
				got, known, err := h.Held(t.Context(), "ml", "one", "q", nil, at(c.at))
				if d := gocmp.Diff(c.want, got); d != "" || err != nil || !known {
					t.Errorf("%v, %t (-want +got)\n%s", err, known, d)
				}
			})
		}
		// Only the unit of b has a class, and no limit of its time.
		scoped, _, err := h.Held(t.Context(), "ml", "one", "q", func(class string, limited bool) bool { return class == "high" && !limited }, at(30.25))
		if d := gocmp.Diff(resource.Vector{resource.GPU: 1000}, scoped.Held); d != "" || err != nil {
			t.Errorf("the work of one class: %v (-want +got)\n%s", err, d)
		}
		if _, known, err := h.Held(t.Context(), "nobody", "one", "q", nil, at(10)); known || err != nil {
			t.Errorf("a tenant without history: %t, %v", known, err)
		}
	})
}

// anyUnits are units of two tenants, some of which have waited, run, ended or were
// preempted.
func anyUnits(random *rand.Rand) (b history.Batch) {
	for i := range 60 {
		created := at(float64(random.IntN(40)) / 4) // many at the same instant
		tenant := []string{"ml", "bio"}[random.IntN(2)]
		u := history.Unit{
			UID: resource.UnitUID(fmt.Sprintf("u%02d", i)), Namespace: tenant + []string{"-a", "-b"}[random.IntN(2)], Name: fmt.Sprintf("job-%d", i%7), Tenant: resource.TenantID(tenant),
			Queue: []string{"default", "gpu"}[random.IntN(2)], State: "Pending", Requests: resource.Vector{resource.CPU: int64(i) * 500, resource.Memory: 1 << 30}, Members: 1,
			Created: created, Revision: 1,
		}
		b.Waits = append(b.Waits, history.Wait{Unit: u.UID, Namespace: u.Namespace, Tenant: u.Tenant, Queue: u.Queue, Since: created, Code: "Insufficient", Revision: 1})
		if random.IntN(4) > 0 {
			u.State, u.Scheduled = "Running", created.Add(time.Duration(random.IntN(100))*time.Minute)
			u.Started = u.Scheduled.Add(time.Second)
			if random.IntN(2) == 0 {
				u.State, u.Reason, u.Ended = "Failed", "GangTimeout", u.Started.Add(time.Hour)
			}
		}
		if !u.Started.IsZero() && random.IntN(3) == 0 {
			b.Grants = append(b.Grants, history.Grant{Tx: resource.TxID("g-" + string(u.UID)), Unit: u.UID, Namespace: u.Namespace, Tenant: u.Tenant, Signaled: u.Started.Add(time.Minute), Revision: 1})
		}
		if random.IntN(5) == 0 {
			b.Preemptions = append(b.Preemptions, history.Preemption{
				Tx: resource.TxID("tx-" + string(u.UID)), Victim: u.UID, VictimTenant: u.Tenant, Preemptor: "other", PreemptorTenant: "ops", Reason: "higher priority",
				Freed: resource.Vector{resource.CPU: 500}, Initiated: created.Add(time.Hour), Outcome: "Evicted", Revision: 1,
			})
		}
		b.Units = append(b.Units, u)
	}
	return b
}

// of reports whether a unit is within a scope and a query.
func of(q ask.Query, u history.Unit) bool {
	within := q.Scope.All
	for _, t := range q.Scope.Tenants {
		within = within || t.Tenant == u.Tenant && (t.Namespaces == nil || slices.Contains(t.Namespaces, u.Namespace))
	}
	return within && (q.Namespace == "" || q.Namespace == u.Namespace) && (q.Name == "" || q.Name == u.Name)
}

func inTime(q ask.Query, at time.Time) bool {
	return !at.IsZero() && !at.Before(q.Since) && (q.Until.IsZero() || at.Before(q.Until))
}

// queries are questions that differ in each field.
var queries = map[string]ask.Query{
	"all":                        {Scope: ask.Scope{All: true}},
	"a tenant's":                 {Scope: ask.Scope{Tenants: []ask.TenantScope{{Tenant: "ml"}}}},
	"two tenants', one in part":  {Scope: ask.Scope{Tenants: []ask.TenantScope{{Tenant: "ml", Namespaces: []string{"ml-b"}}, {Tenant: "bio"}}}},
	"a tenant's in no namespace": {Scope: ask.Scope{Tenants: []ask.TenantScope{{Tenant: "ml", Namespaces: []string{}}}}},
	"nobody's":                   {},
	"a namespace's":              {Scope: ask.Scope{All: true}, Namespace: "bio-a"},
	"those of a name":            {Scope: ask.Scope{All: true}, Name: "job-3"},
	"those of a time":            {Scope: ask.Scope{All: true}, Since: at(2), Until: at(5)},
}

// pages are all pages of a question together.
func pages[T any](t *testing.T, q ask.Query, limit int, list func(q ask.Query) ([]T, string, error)) []T {
	t.Helper()
	var all []T
	for q.Limit = limit; ; {
		rows, next, err := list(q)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rows...)
		if len(rows) > limit || len(rows) < limit && next != "" {
			t.Fatalf("a page of %d rows, continue %q; want %d on each but the last", len(rows), next, limit)
		}
		if q.Continue = next; next == "" {
			return all
		}
	}
}

func TestListsOfThePastAreWholeInOrderAndWithinTheScope(t *testing.T) {
	b := anyUnits(rand.New(rand.NewPCG(1, 2)))
	units := map[resource.UnitUID]history.Unit{}
	for _, u := range b.Units {
		units[u.UID] = u
	}
	both(t, b, func(t *testing.T, h *ask.History) {
		for name, q := range queries {
			for _, limit := range []int{1, 7, 1000} {
				t.Run(fmt.Sprintf("%s, by %d", name, limit), func(t *testing.T) {
					var uids, preempted, happened []string
					for _, u := range sorted(b.Units) {
						if of(q, u) && inTime(q, u.Created) {
							uids = append(uids, string(u.UID))
						}
					}
					for _, p := range b.Preemptions {
						if of(q, units[p.Victim]) && inTime(q, p.Initiated) {
							preempted = append(preempted, string(p.Tx))
						}
					}
					happened = events(b, q, units)
					got := pages(t, q, limit, func(q ask.Query) ([]ask.Allocation, string, error) { return h.Allocations(t.Context(), q) })
					if d := gocmp.Diff(uids, named(got, func(a ask.Allocation) string { return a.UID })); d != "" {
						t.Errorf("allocations (-want +got)\n%s", d)
					}
					victims := pages(t, q, limit, func(q ask.Query) ([]ask.Preemption, string, error) { return h.Preemptions(t.Context(), q) })
					slices.Sort(preempted)
					ids := named(victims, func(p ask.Preemption) string { return "tx-" + strings.TrimPrefix(p.ID, "tx-") })
					slices.Sort(ids)
					if len(ids) != len(preempted) {
						t.Errorf("preemptions %v, want %v", ids, preempted)
					}
					found := pages(t, q, limit, func(q ask.Query) ([]ask.Event, string, error) { return h.Events(t.Context(), q) })
					if d := gocmp.Diff(happened, sortedText(found)); d != "" {
						t.Errorf("events (-want +got)\n%s", d)
					}
					if !slices.IsSortedFunc(found, func(a, b ask.Event) int { return b.At.Compare(a.At) }) {
						t.Error("events are not in order")
					}
				})
			}
		}
	})
}

func sorted(units []history.Unit) []history.Unit {
	return slices.SortedFunc(slices.Values(units), func(a, b history.Unit) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.UID, a.UID))
	})
}

func named[T any](rows []T, name func(T) string) []string {
	var names []string
	for _, r := range rows {
		names = append(names, name(r))
	}
	return names
}

func line(at time.Time, kind, namespace, name string) string {
	return at.UTC().Format(time.RFC3339) + " " + kind + " " + namespace + "/" + name
}

func sortedText(events []ask.Event) []string {
	var lines []string
	for _, e := range events {
		lines = append(lines, line(e.At, e.Type, e.Namespace, e.Object))
	}
	slices.Sort(lines)
	return lines
}

// events are those that a query selects, as lines in order.
func events(b history.Batch, q ask.Query, units map[resource.UnitUID]history.Unit) []string {
	var lines []string
	add := func(at time.Time, kind string, u history.Unit) {
		if of(q, u) && inTime(q, at) {
			lines = append(lines, line(at, kind, u.Namespace, u.Name))
		}
	}
	for _, g := range b.Grants {
		add(g.Signaled, "Signaled", units[g.Unit])
	}
	for _, u := range b.Units {
		add(u.Created, "Created", u)
		add(u.Scheduled, "Scheduled", u)
		add(u.Started, "Started", u)
		add(u.Ended, "Ended", u)
	}
	for _, w := range b.Waits {
		add(w.Since, "Waiting", units[w.Unit])
	}
	for _, p := range b.Preemptions {
		add(p.Initiated, "Preempted", units[p.Victim])
	}
	slices.Sort(lines)
	return lines
}

func TestAnAllocationOfThePastHasItsAmounts(t *testing.T) {
	b := anyUnits(rand.New(rand.NewPCG(3, 4)))
	both(t, b, func(t *testing.T, h *ask.History) {
		got, _, err := h.Allocations(t.Context(), ask.Query{Scope: ask.Scope{All: true}, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range got {
			i := slices.IndexFunc(b.Units, func(u history.Unit) bool { return string(u.UID) == a.UID })
			u := b.Units[i]
			want := u.Requests.Clone()
			if want[resource.CPU] == 0 {
				delete(want, resource.CPU)
				delete(a.Requests, resource.CPU)
			}
			if d := gocmp.Diff(want, a.Requests); d != "" || !a.Ended.Equal(u.Ended) || a.Reason != u.Reason {
				t.Errorf("%s: ended %s by %q, want %s by %q (-want +got)\n%s", a.UID, a.Ended, a.Reason, u.Ended, u.Reason, d)
			}
		}
	})
}

func TestWaitsOfQueues(t *testing.T) {
	var b history.Batch
	for i := range 200 { // waits of 1 to 200 s
		b.Units = append(b.Units, history.Unit{
			UID: resource.UnitUID(fmt.Sprint(i)), Tenant: "ml", Namespace: "one", Queue: "gpu", State: "Running", Members: 1,
			Created: start, Scheduled: start.Add(time.Duration(i+1) * time.Second), Revision: 1,
		})
	}
	b.Units = append(b.Units, history.Unit{UID: "x", Tenant: "bio", Namespace: "two", Queue: "default", Members: 1, Created: start, Scheduled: at(2), Revision: 1})
	both(t, b, func(t *testing.T, h *ask.History) {
		all := []ask.Wait{{Queue: "default", Units: 1, Average: 2 * time.Hour, P99: 2 * time.Hour}, {Queue: "gpu", Units: 200, Average: 100_500 * time.Millisecond, P99: 198 * time.Second}}
		got, err := h.Waits(t.Context(), ask.Scope{All: true}, start, at(3))
		if d := gocmp.Diff(all, got); d != "" || err != nil {
			t.Errorf("%v (-want +got)\n%s", err, d)
		}
		got, err = h.Waits(t.Context(), ask.Scope{Tenants: []ask.TenantScope{{Tenant: "ml"}}}, start, at(3))
		if d := gocmp.Diff(all[1:], got); d != "" || err != nil {
			t.Errorf("of one tenant: %v (-want +got)\n%s", err, d)
		}
	})
}

func TestAWrongTokenIsRefused(t *testing.T) {
	both(t, history.Batch{}, func(t *testing.T, h *ask.History) {
		for _, token := range []string{"!", "bm90aGluZw", strings.Repeat("a", 1000), "LTEgYQ", "MSBhAGI", "MSD_"} {
			if _, _, err := h.Allocations(t.Context(), ask.Query{Continue: token}); err == nil || !strings.Contains(err.Error(), "continue") {
				t.Errorf("%.20s…: error %v", token, err)
			}
		}
	})
}

func FuzzParseToken(f *testing.F) {
	f.Add("")
	f.Add("MTIzIGFiYw")
	f.Fuzz(func(t *testing.T, text string) {
		if ms, id, err := ask.ParseToken(text); err == nil && (ms < 0 || id == "" || strings.ContainsRune(id, 0) || !utf8.ValidString(id)) {
			t.Errorf("%q is %d, %q", text, ms, id)
		}
	})
}
