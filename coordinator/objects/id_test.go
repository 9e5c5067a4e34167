package objects_test

import (
	"math"
	"testing"

	"github.com/musterd/muster/coordinator/objects"
)

func TestIDs(t *testing.T) {
	for text, want := range map[string]objects.ID{
		"48292":   objects.AllOf(48292),
		"48292.0": {Revision: 48292},
		"7.12":    {Revision: 7, Index: 12},
	} {
		if got, err := objects.ParseID(text); got != want || err != nil || got.String() != text {
			t.Errorf("%s is %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ".", "1.", ".1", "-1", "+1", "01", "1.01", "1.-1", "1.1.1", " 1", "9223372036854775808", "1.2147483648"} {
		if got, err := objects.ParseID(text); err == nil {
			t.Errorf("%q is read as %s", text, got)
		}
	}
	if a, b := (objects.ID{Revision: 4, Index: math.MaxInt32}), objects.AllOf(4); a.Compare(b) >= 0 || b.Compare(objects.ID{Revision: 5}) >= 0 {
		t.Error("the end of a revision is behind its events and before the next revision")
	}
}

func FuzzParseID(f *testing.F) {
	for _, text := range []string{"48292", "48292.0", "1.2147483648", "x", "1.1.1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if id, err := objects.ParseID(text); err == nil && id.String() != text {
			t.Errorf("%q is read as %s", text, id)
		}
	})
}
