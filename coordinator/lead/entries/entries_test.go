package entries_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/lead/entries"
	"github.com/musterd/muster/coordinator/record"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func change(i int, tenant, person, name string) record.Audit {
	return record.Audit{Actor: record.Actor{ID: fmt.Sprint(i), Person: person, Tenant: tenant}, Verb: "patch", Kind: "jobs", Namespace: "ns", Name: name}
}

// worth is the number of changes in entries.
func worth(written map[string]record.Audit) (n int64) {
	for _, a := range written {
		n += max(a.Count, 1)
	}
	return n
}

// For any changes of tenants, each change is in exactly one entry, an administrator's change
// has an entry alone, a tenant's entries are bounded, and a late tenant has the sure entries.
func TestEachChangeIsInExactlyOneEntry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h entries.Hour
		written, now := map[string]record.Audit{}, noon
		tenants := rapid.IntRange(1, 6).Draw(t, "tenants")
		changes := rapid.IntRange(0, 40_000).Draw(t, "changes")
		persons, objects, kinds := rapid.IntRange(1, 300).Draw(t, "persons"), rapid.IntRange(1, 5000).Draw(t, "objects"), rapid.IntRange(1, 4).Draw(t, "kinds")
		of := map[string]int{}
		for i := range changes {
			a := change(i, fmt.Sprint("t", i%tenants), fmt.Sprint("p", i/tenants%persons), fmt.Sprint("o", i%objects))
			a.Kind = fmt.Sprint("k", i%kinds)
			a.Apart = i%1000 == 7
			e := h.Next(now, a)
			if a.Apart && (e != a || written[e.ID].ID != "") {
				t.Fatalf("the change %+v of an administrator is in the entry %+v", a, e)
			}
			if written[e.ID].ID == "" && !e.Apart {
				of[e.Tenant]++
			}
			if e.Tenant != a.Tenant || e.Person != a.Person && e.Verb != entries.Several || e.Name != a.Name && e.Name != "" {
				t.Fatalf("the change %+v is in the entry %+v of another caller or object", a, e)
			}
			written[e.ID] = e
		}
		if got := worth(written); got != int64(changes) {
			t.Fatalf("the entries stand for %d changes, want %d", got, changes)
		}
		for tenant, n := range of {
			if n > entries.MostOfTenant+entries.MostGroups+1 {
				t.Fatalf("%s has %d entries", tenant, n)
			}
		}
		for i := range entries.Sure {
			if a := change(-1-i, "late", "ada", fmt.Sprint(i)); h.Next(now, a) != a {
				t.Fatalf("change %d of a tenant that comes late has no entry", i)
			}
		}
	})
}

func TestTheBoundsOfAnHour(t *testing.T) {
	var h entries.Hour
	n := 0
	own := func(tenant, person, name string) bool {
		n++
		a := change(n, tenant, person, name)
		return h.Next(noon, a) == a
	}
	for range entries.MostAlike {
		if !own("a", "ada", "same") {
			t.Fatal("one of the first changes to an object has no entry")
		}
	}
	if own("a", "ada", "same") || !own("a", "bob", "same") || !own("a", "ada", "other") {
		t.Error("the changes alike are not those of one person to one object")
	}
	for i := range entries.MostOfPerson - entries.MostAlike - 1 {
		if !own("a", "ada", fmt.Sprint("o", i)) {
			t.Fatalf("change %d of a person has no entry", i)
		}
	}
	if own("a", "ada", "one more") || !own("a", "bob", "one more") {
		t.Error("the bound of a person is not kept, or is another person's, too")
	}
	i := 0
	for ; own("a", fmt.Sprint("p", i/1000), fmt.Sprint("o", i)); i++ {
	}
	if want := entries.MostOfTenant - entries.MostOfPerson - 2; i != want {
		t.Errorf("the others of a tenant have %d entries, want %d", i, want)
	}
	if !own("b", "ada", "one more") {
		t.Error("another tenant has no entry")
	}

	// The next hour has room again, not a moment earlier.
	a := change(-1, "a", "eve", "x")
	if h.Next(noon.Add(time.Hour-1), a) == a {
		t.Error("there is room before the hour is over")
	}
	if h.Next(noon.Add(time.Hour), a) != a {
		t.Error("there is no room in the next hour")
	}
}

// All tenants together have a bound, beyond which each has the sure entries.
func TestAllTenantsTogetherHaveABound(t *testing.T) {
	var h entries.Hour
	n := 0
	own := func(tenant string) int {
		for i := 0; ; i++ {
			n++
			if a := change(n, tenant, fmt.Sprint("p", i/1000), fmt.Sprint(i)); h.Next(noon, a) != a {
				return i
			}
		}
	}
	for i := range entries.MostOfAll / entries.MostOfTenant {
		if got := own(fmt.Sprint("t", i)); got != entries.MostOfTenant {
			t.Fatalf("tenant %d has %d entries, want %d", i, got, entries.MostOfTenant)
		}
	}
	if got := own("late"); got != entries.Sure {
		t.Errorf("a tenant that comes late has %d entries, want %d", got, entries.Sure)
	}
	root := change(0, "", "root", "x")
	root.Apart = true
	for i := range 100_000 {
		if h.Next(noon, root) != root {
			t.Fatalf("change %d of an administrator has no entry", i)
		}
	}
}

// A person without a tenant who is no administrator has a share, too.
func TestAPersonWithoutATenantHasAShare(t *testing.T) {
	var h entries.Hour
	for i := range entries.MostOfPerson {
		if a := change(i, "", "ada", fmt.Sprint(i)); h.Next(noon, a) != a {
			t.Fatalf("change %d has no entry", i)
		}
	}
	if a := change(-1, "", "ada", "x"); h.Next(noon, a) == a {
		t.Error("the share is not bounded")
	}
	if a := change(-2, "", "bob", "x"); h.Next(noon, a) != a {
		t.Error("another person has no share")
	}
}

func ExampleHour_Next() {
	var h entries.Hour
	for i := range entries.MostAlike + 3 {
		e := h.Next(noon, change(i, "vision", "ada", "train"))
		if i >= entries.MostAlike-1 {
			fmt.Println(e.ID, e.Count)
		}
	}
	// Output:
	// 15 0
	// 15 2
	// 15 3
	// 15 4
}
