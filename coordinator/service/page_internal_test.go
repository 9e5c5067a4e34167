package service

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
)

// jobsOf are jobs by their positions.
func jobsOf(keys ...string) map[string]*api.Job {
	jobs := map[string]*api.Job{}
	for _, key := range keys {
		namespace, name, _ := strings.Cut(key, "/")
		jobs[key] = &api.Job{Metadata: api.ObjectMeta{Namespace: namespace, Name: name}}
	}
	return jobs
}

// shuffled yields the keys in a random order, as a map does.
func shuffled(keys []string) func(func(string) bool) {
	mixed := slices.Clone(keys)
	rand.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	return slices.Values(mixed)
}

// All pages together are the sorted and filtered list, for every limit.
func TestPagesAreTheWholeList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfDistinct(rapid.StringMatching(`[ab]-?[ab]/[ab.-]{1,4}`), func(k string) string { return k }).Draw(t, "keys")
		limit := rapid.IntRange(1, 5).Draw(t, "limit")
		matches := func(j *api.Job) bool { return !strings.HasSuffix(j.Metadata.Name, "b") }
		jobs := jobsOf(keys...)
		var want, got []string
		for _, key := range keys {
			if matches(jobs[key]) {
				want = append(want, key)
			}
		}
		slices.SortFunc(want, comparePositions)
		after := ""
		for pages := 0; ; pages++ {
			items, more := Page[api.Job]{After: after, Limit: limit, Match: matches}.Of(shuffled(keys), func(key string) *api.Job { return jobs[key] })
			if len(items) > limit || pages > len(keys) {
				t.Fatalf("page %d has %d items, the limit is %d", pages, len(items), limit)
			}
			for i := range items {
				got = append(got, items[i].Metadata.Namespace+"/"+items[i].Metadata.Name)
			}
			if more == "" {
				break
			}
			after = more
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// The smallest keys are found for every order of the keys.
func TestSmallestKeysAreFoundWithoutSortingAll(t *testing.T) {
	var keys []string
	for i := range 10_000 {
		keys = append(keys, fmt.Sprintf("a/%05d", i))
	}
	for _, after := range []string{"", "a/00000", "a/00499", "a/09990", "a/09999"} {
		got, left := smallest(shuffled(keys), after, 7)
		from := 0
		if after != "" {
			from = slices.Index(keys, after) + 1
		}
		want := keys[from:min(from+7, len(keys))]
		if !slices.Equal(got, want) || left != (from+7 < len(keys)) {
			t.Errorf("after %q: got %v and left=%t, want %v", after, got, left, want)
		}
	}
}
