package rendezvous_test

import (
	"testing"

	"github.com/musterd/muster/coordinator/rendezvous"
)

// A range that is read has ports, is written as it can be read, and chooses inside.
func FuzzParseRange(f *testing.F) {
	for _, text := range []string{"", "20000-29999", "1024-65535", "4001-4000", "-", "1e4-2e4"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := rendezvous.ParseRange(text)
		if err != nil {
			return
		}
		if again, err := rendezvous.ParseRange(r.String()); err != nil || again != r {
			t.Fatalf("%q: %v is read as %v, %v", text, r, again, err)
		}
		if p := r.Preferred("tx"); p < r.First || p > r.Last || r.First < 1024 || r.Last > 65535 {
			t.Fatalf("%q: port %d of %v", text, p, r)
		}
	})
}
