package audit

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
)

// The pages of a book together are all entries that a query selects, each once and the
// newest first, however the entries are spread over changes and refusals and however
// few of them a page looks at.
func TestPagesAreAllEntriesOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &Book{}
		var want []string
		for i := range rapid.IntRange(0, 60).Draw(t, "entries") {
			id := fmt.Sprintf("%013d-%d", rapid.IntRange(0, 20).Draw(t, "millis"), i)
			person := rapid.SampledFrom([]string{"ada", "bob"}).Draw(t, "person")
			entry := record.Audit{Actor: record.Actor{ID: id, Person: person}, Verb: "delete", Kind: "jobs"}
			if rapid.Bool().Draw(t, "refused") {
				b.refused.Add(&api.AuditEntry{ID: id, Person: person, Result: api.AuditRefused})
			} else {
				b.Followed(entry)
				b.Followed(entry) // as after a reload
			}
			if person == "ada" {
				want = append(want, id)
			}
		}
		slices.Sort(want)
		slices.Reverse(want)
		ctx := service.WithCaller(t.Context(), service.Caller{Principal: service.Principal{Admin: true}})
		q := service.AuditQuery{Person: "ada", Limit: rapid.IntRange(1, 8).Draw(t, "limit")}
		looks := rapid.IntRange(1, 5).Draw(t, "looks")
		var got []string
		for range 500 {
			list, err := b.list(ctx, q, looks)
			if err != nil {
				t.Fatal(err)
			}
			if len(list.Items) > q.Limit {
				t.Fatalf("a page of %d entries, the limit is %d", len(list.Items), q.Limit)
			}
			for i := range list.Items {
				got = append(got, list.Items[i].ID)
			}
			if q.Before = list.Metadata.Continue; q.Before == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

// The oldest entries go where there are too many.
func TestALogIsBounded(t *testing.T) {
	l := Log{most: 3}
	for _, id := range []string{"3", "1", "5", "2", "4"} {
		l.Add(&api.AuditEntry{ID: id})
	}
	all, more := l.page("", 10, 10, func(*api.AuditEntry) bool { return true })
	if len(all) != 3 || all[0].ID != "5" || all[2].ID != "3" || more != "" {
		t.Errorf("%+v, more %q", all, more)
	}
}
