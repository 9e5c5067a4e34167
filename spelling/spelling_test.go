package spelling

import "testing"

func TestNearest(t *testing.T) {
	names := []string{"cpu", "memory", "nvidia.com/gpu"}
	for name, c := range map[string]struct {
		word string
		most int
		want string
	}{
		"the same":                 {"cpu", 0, "cpu"},
		"a letter too many":        {"cpus", 1, "cpu"},
		"a letter missing":         {"memry", 1, "memory"},
		"a letter replaced":        {"nvidia.com/gpi", 1, "nvidia.com/gpu"},
		"neighbours change places": {"memroy", 1, "memory"},
		"two pairs change places":  {"mmeroy", 1, ""},
		"more letters than most":   {"memxyz", 2, ""},
		"nothing is near nothing":  {"", 2, ""},
	} {
		if got := Nearest(c.word, names, c.most); got != c.want {
			t.Errorf("%s: Nearest(%q, %d) = %q, want %q", name, c.word, c.most, got, c.want)
		}
	}
	if got := Nearest("ab", []string{"ac", "ad"}, 1); got != "ac" {
		t.Errorf("of two that are equally near the first is wanted, got %q", got)
	}
}
