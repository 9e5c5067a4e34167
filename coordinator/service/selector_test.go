package service

import (
	"testing"

	"github.com/musterd/muster/api"
)

func TestLabelSelectors(t *testing.T) {
	labels := map[string]string{"app": "train", "tier": "gold", "empty": ""}
	cases := map[string]bool{
		"": true, "app=train": true, "app==train": true, "app = train": true, "app=other": false, "app!=other": true, "app!=train": false,
		"missing!=x": true, "missing=": false, "empty=": true, "app in (a, train)": true, "app in (a,b)": false,
		"app notin (a,b)": true, "app notin (train)": false, "missing notin (a)": true, "app": true, "missing": false,
		"!missing": true, "!app": false, "app=train,tier=gold": true, "app=train,tier=silver": false,
		"app in (train,x),tier notin (silver),!missing": true,
	}
	for text, want := range cases {
		t.Run(text, func(t *testing.T) {
			s, err := parseLabelSelector(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.matches(labels); got != want {
				t.Errorf("matches %t, want %t", got, want)
			}
		})
	}
	for _, bad := range []string{",", "=x", "a b", "app in train", "app in (a", "in (a)", "app=a b", "app===x", "app>5", "app=)", "(", "!", "a=b,,c"} {
		if s, err := parseLabelSelector(bad); err == nil {
			t.Errorf("%q was read as %+v", bad, s)
		}
	}
}

func FuzzSelectors(f *testing.F) {
	for _, s := range []string{"app in (a,b),!c", "a=b", "((,", "x notin ()", "status.phase!=Running"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s, err := parseLabelSelector(text); err == nil {
			s.matches(map[string]string{"a": "b"})
		}
		_, _ = parseFieldSelector(text)
		if after, at, err := DecodeContinue(text); err == nil && (after == "" || at < 0) {
			t.Errorf("%q is read as %q at %d", text, after, at)
		}
	})
}

func TestPagesCoverAListOnceInOrder(t *testing.T) {
	var items []api.Allocation
	for _, key := range [][2]string{{"b", "x"}, {"a", "z"}, {"a-b", "a"}, {"a", "b"}, {"a", "b.c"}, {"a", "b-c"}} {
		items = append(items, api.Allocation{Metadata: api.ObjectMeta{Namespace: key[0], Name: key[1]}})
	}
	want := []string{"a/b", "a/b-c", "a/b.c", "a/z", "a-b/a", "b/x"}
	for limit := 1; limit <= len(items)+1; limit++ {
		var got []string
		q := Selection{Limit: limit}
		for {
			page, more := ListedAllocations.Cut(append([]api.Allocation(nil), items...), &q)
			for i := range page {
				got = append(got, Position(&page[i].Metadata))
			}
			if more == "" {
				break
			}
			if err := q.Select("continue", EncodeContinue(more, "7")); err != nil {
				t.Fatal(err)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("limit %d: got %v, want %v", limit, got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("limit %d: got %v, want %v", limit, got, want)
			}
		}
	}
}
