package spool

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/history"
)

// FuzzDecode: no bytes make decode fail otherwise than by an error, and a frame that it
// reads is one that encode could have written.
func FuzzDecode(f *testing.F) {
	good, err := encode(history.Batch{After: 1, Upto: 2, Units: []history.Unit{{UID: "u"}}, Gaps: []history.Gap{{From: 1, Upto: 2}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		b, length, err := decode(data)
		if err != nil {
			return
		}
		if length > len(data) || b.Upto < b.After {
			t.Fatalf("%d of %d bytes, revisions %d to %d", length, len(data), b.After, b.Upto)
		}
		again, err := encode(b)
		if err != nil {
			t.Fatal(err)
		}
		back, _, err := decode(again)
		if diff := cmp.Diff(b, back); err != nil || diff != "" {
			t.Fatalf("error %v (-want +got):\n%s", err, diff)
		}
	})
}
