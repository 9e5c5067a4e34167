package spool_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/history/spool"
	"github.com/musterd/muster/resource"
)

func open(t testing.TB, dir string, most int64) (*spool.Spool, int64) {
	t.Helper()
	s, lost, err := spool.Open(dir, most)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, lost
}

func batch(after, upto resource.Revision) history.Batch {
	return history.Batch{After: after, Upto: upto, Units: []history.Unit{{UID: resource.UnitUID(fmt.Sprint("u", upto)), Requests: resource.Vector{resource.CPU: 1}, Revision: upto}}}
}

// TestASpoolIsAQueue holds a spool beside a slice, over any opening and dropping.
func TestASpoolIsAQueue(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		dir := t.TempDir()
		s, _ := open(t, dir, 0)
		var want []history.Batch
		at := resource.Revision(0)
		for range 30 {
			switch n := random.IntN(8); {
			case n < 4:
				b := batch(at, at+1+resource.Revision(random.IntN(3)))
				if err := s.Append(b); err != nil {
					t.Fatal(err)
				}
				want, at = append(want, b), b.Upto
			case n < 7:
				upto := resource.Revision(random.IntN(int(at) + 1))
				if err := s.DropUpto(upto); err != nil {
					t.Fatal(err)
				}
				for len(want) > 0 && want[0].Upto <= upto {
					want = want[1:]
				}
			default:
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				var lost int64
				if s, lost = open(t, dir, 0); lost != 0 || s.Len() < len(want) {
					t.Fatalf("seed %d: opened again, %d bytes are lost, %d batches of %d", seed, lost, s.Len(), len(want))
				}
				// Batches that were dropped are there again, in segments that others need.
				dropped := at
				if len(want) > 0 {
					dropped = want[0].After
				}
				if err := s.DropUpto(dropped); err != nil {
					t.Fatal(err)
				}
			}
			got, found, err := s.First()
			if s.Len() != len(want) || found != (len(want) > 0) || err != nil {
				t.Fatalf("seed %d: %d batches, found %t, error %v; want %d", seed, s.Len(), found, err, len(want))
			}
			if found {
				if diff := cmp.Diff(want[0], got); diff != "" {
					t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
				}
			}
		}
	}
}

// TestATornTailIsDropped cuts the last segment at each byte.
func TestATornTailIsDropped(t *testing.T) {
	dir := t.TempDir()
	s, _ := open(t, dir, 0)
	for i := range resource.Revision(3) {
		if err := s.Append(batch(i, i+1)); err != nil {
			t.Fatal(err)
		}
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.seg"))
	whole, err := os.ReadFile(files[0])
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	for cut := range len(whole) {
		torn := t.TempDir()
		if err := os.WriteFile(filepath.Join(torn, filepath.Base(files[0])), whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		s, lost := open(t, torn, 0)
		if want := s.Bytes() + lost; want != int64(cut) || s.Len() >= 3 {
			t.Fatalf("cut at %d: %d batches, %d bytes kept and %d lost", cut, s.Len(), s.Bytes(), lost)
		}
		_, upto := s.Reach()
		if err := s.Append(batch(upto, upto+1)); err != nil {
			t.Fatal(err)
		}
		s.Close()
		if s, lost = open(t, torn, 0); lost != 0 {
			t.Fatalf("cut at %d, and appended to: %d bytes are lost", cut, lost)
		}
	}
}

func TestASpoolIsBounded(t *testing.T) {
	s, _ := open(t, t.TempDir(), 2000)
	var full *spool.FullError
	at := resource.Revision(0)
	for range 100 {
		if err := s.Append(batch(at, at+1)); errors.As(err, &full) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		at++
	}
	if full == nil || full.Most != 2000 || s.Bytes() > 2000 {
		t.Fatalf("%d bytes, error %v", s.Bytes(), full)
	}
	if err := s.DropUpto(at); err != nil || s.Bytes() != 0 {
		t.Fatalf("%d bytes are left, error %v", s.Bytes(), err)
	}
	if err := s.Append(batch(at, at+1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(batch(at+5, at+6)); err == nil {
		t.Error("a batch that does not follow was taken")
	}
}
