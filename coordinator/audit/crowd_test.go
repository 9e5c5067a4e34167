package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
)

func stranger(id int, address string) record.Audit {
	return record.Audit{Actor: record.Actor{ID: fmt.Sprintf("%013d-s", id), Address: address}}
}

var unknown, forbidden = api.Errorf(401, "unknown token"), api.Errorf(403, "delete jobs: want the role editor")

// knows reports whether a book shows a refusal of a person.
func knows(t *testing.T, b *Book, person string) bool {
	t.Helper()
	ctx := service.WithCaller(t.Context(), service.Caller{Principal: service.Principal{Admin: true}})
	list, err := b.ListAudit(ctx, service.AuditQuery{Person: person, Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	return len(list.Items) == 1
}

// A flood of strangers from many addresses leaves the refusal of a person in memory and in
// the files, and both within their bounds.
func TestStrangersWashNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		b := openBook(t, Config{Dir: dir, MaxBytes: 64 << 10, Files: 4})
		b.Refused(record.Audit{Actor: record.Actor{ID: "0000000000000-ada", Person: "ada", Tenant: "vision"}, Verb: "delete", Kind: "jobs", Name: "train"}, forbidden)
		id := 0
		for range 12 { // seconds
			for i := range 3 * mostPlaces {
				id++
				b.Refused(stranger(id, fmt.Sprintf("10.%d.%d.1:%d", i>>8, i&255, id%60000)), unknown)
			}
			time.Sleep(time.Second)
		}
		if got := b.strangers.Len(); got > 10_000 {
			t.Errorf("%d entries of strangers are in memory", got)
		}
		if !knows(t, b, "ada") {
			t.Error("the refusal of a person is not in memory")
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		var size int64
		persons := ""
		names, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			size += int64(len(text))
			if strings.HasPrefix(filepath.Base(name), "refused-") {
				persons += string(text)
			}
		}
		if size > 5*64<<10 || strings.Count(persons, "\n") != 1 || !strings.Contains(persons, `"train"`) {
			t.Errorf("%d bytes in %d files, of persons %q", size, len(names), persons)
		}
		again := openBook(t, Config{Dir: dir, MaxBytes: 64 << 10, Files: 4})
		if !knows(t, again, "ada") || again.strangers.Len() == 0 {
			t.Errorf("after a restart %d strangers, and no refusal of a person", again.strangers.Len())
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// The requests of an address in a second are a single entry, in memory at once and in the
// files at the end of the second; the next second has another entry.
func TestTheRefusalsOfASecondAreOneEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		b := openBook(t, Config{Dir: dir})
		shown := func() string {
			ctx := service.WithCaller(t.Context(), service.Caller{Principal: service.Principal{Admin: true}})
			list, err := b.ListAudit(ctx, service.AuditQuery{Result: api.AuditRefused, Limit: 100})
			if err != nil {
				t.Fatal(err)
			}
			var all []string
			for _, e := range list.Items {
				all = append(all, fmt.Sprintf("%s %d×%d", e.Address, e.Code, max(e.Count, 1)))
			}
			return strings.Join(all, ", ")
		}
		for i := range 5 {
			b.Refused(stranger(i, fmt.Sprint("10.0.0.1:", 4000+i)), unknown)
		}
		b.Refused(stranger(5, "10.0.0.1:4000"), api.Errorf(429, "too many requests"))
		b.Refused(stranger(6, "[2001:db8::1]:4000"), unknown)
		b.Refused(stranger(7, "[2001:db8::2]:4000"), unknown)
		b.Refused(stranger(8, "[2001:db8:0:1::1]:4000"), unknown)
		want := "[2001:db8:0:1::1]:4000 401×1, [2001:db8::1]:4000 401×2, 10.0.0.1:4000 429×1, 10.0.0.1:4000 401×5"
		if got := shown(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		time.Sleep(time.Second)
		b.Refused(stranger(9, "10.0.0.1:4000"), unknown)
		if got := shown(); got != "10.0.0.1:4000 401×1, "+want {
			t.Errorf("in the next second %s", got)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		b = openBook(t, Config{Dir: dir})
		if got := shown(); got != "10.0.0.1:4000 401×1, "+want {
			t.Errorf("after a restart %s", got)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// The entries of a second together stand for each refusal once, each for a single caller,
// and their number is bounded.
func TestACrowdCountsExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c crowd
		now := time.UnixMilli(0)
		kept := map[string]*api.AuditEntry{}
		n := rapid.IntRange(0, 2000).Draw(t, "refusals")
		tenants := rapid.IntRange(1, 3).Draw(t, "tenants")
		places := rapid.IntRange(1, 3000).Draw(t, "places")
		objects := rapid.IntRange(1, 100).Draw(t, "objects")
		for i := range n {
			e := &api.AuditEntry{ID: fmt.Sprint(i), Code: 403, Person: "ada", Tenant: fmt.Sprint("t", i%tenants), Name: fmt.Sprint(i % objects)}
			if i%2 == 0 {
				e = &api.AuditEntry{ID: fmt.Sprint(i), Code: 401, Address: fmt.Sprintf("10.0.%d.%d:1", i%places>>8, i%places&255)}
			}
			stands, over := c.take(now, e)
			if len(over) > 0 || stands.Tenant != e.Tenant || isStranger(stands) != isStranger(e) {
				t.Fatalf("%+v is in %+v, over %v", e, stands, over)
			}
			kept[stands.ID] = stands
		}
		sum := int64(0)
		for _, e := range kept {
			sum += max(e.Count, 1)
		}
		if sum != int64(n) || len(kept) > mostPlaces+1+tenants*(mostOfOwner+1) {
			t.Fatalf("%d entries stand for %d refusals, want %d", len(kept), sum, n)
		}
		if _, over := c.take(now.Add(time.Second), &api.AuditEntry{ID: "next"}); len(over) != len(kept) {
			t.Fatalf("%d entries are over, want %d", len(over), len(kept))
		}
	})
}

// The entries of an owner in memory wash out the same owner's alone.
func TestALogForgetsTheOwnerWithTheMost(t *testing.T) {
	l := Log{most: 10}
	l.Add(&api.AuditEntry{ID: "00", Person: "root"})
	l.Add(&api.AuditEntry{ID: "01", Person: "ada", Tenant: "vision"})
	for i := range 100 {
		l.Add(&api.AuditEntry{ID: fmt.Sprintf("1%02d", i), Person: "eve", Tenant: "sales"})
	}
	all, _ := l.page("", 20, 20, func(*api.AuditEntry) bool { return true })
	if len(all) != 10 || all[9].ID != "00" || all[8].ID != "01" || all[0].ID != "199" {
		t.Errorf("%d entries, from %+v to %+v", len(all), all[0], all[len(all)-1])
	}
	l.Add(&api.AuditEntry{ID: "199", Person: "eve", Tenant: "sales", Count: 2}) // the same with another count
	if l.Len() != 10 {
		t.Errorf("%d entries", l.Len())
	}
}
