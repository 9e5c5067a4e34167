package service

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
)

// A page is made in visits of at most visitObjects, which together are the page
// that one visit without a bound would make.
func TestAPageIsMadeInShortVisits(t *testing.T) {
	stored := map[string]*api.Job{}
	for i := range 1200 {
		j := &api.Job{Metadata: api.ObjectMeta{Namespace: "n", Name: fmt.Sprintf("j-%04d", i)}}
		if i%3 == 0 {
			j.Metadata.Labels = map[string]string{"third": "yes"}
		}
		stored["n/"+j.Metadata.Name] = j
	}
	for name, c := range map[string]struct {
		limit, want int
		match       func(*api.Job) bool
		more        bool
	}{
		"a whole page":               {MaxPage, MaxPage, nil, true},
		"a page of less":             {7, 7, nil, true},
		"a list that ends":           {2000, 1200, nil, false},
		"a selector":                 {MaxPage, 400, func(j *api.Job) bool { return j.Metadata.Labels["third"] != "" }, false},
		"a selector without matches": {MaxPage, 0, func(*api.Job) bool { return false }, false},
	} {
		t.Run(name, func(t *testing.T) {
			visits := 0
			items, meta, err := Gather(Page[api.Job]{Limit: c.limit, Match: c.match}, func(p Page[api.Job]) ([]api.Job, api.ListMeta, error) {
				visits++
				if p.Limit < 1 || p.Limit > visitObjects {
					t.Errorf("a visit asks for %d objects, want 1..%d", p.Limit, visitObjects)
				}
				items, more := p.Of(maps.Keys(stored), func(key string) *api.Job { return stored[key] })
				return items, api.ListMeta{ResourceVersion: fmt.Sprint(visits), Continue: more}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(items) != c.want || meta.ResourceVersion != "1" || (meta.Continue != "") != c.more {
				t.Errorf("%d objects at resourceVersion %s, more %q; want %d at that of the first visit, more %v", len(items), meta.ResourceVersion, meta.Continue, c.want, c.more)
			}
			if !slices.IsSortedFunc(items, func(a, b api.Job) int { return strings.Compare(a.Metadata.Name, b.Metadata.Name) }) {
				t.Error("the page is out of order")
			}
		})
	}
}
