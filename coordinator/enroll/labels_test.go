package enroll_test

import (
	"crypto"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/enroll"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store/mem"
)

func TestATokenGivesItsLabelsToTheNodesThatItLetsIn(t *testing.T) {
	s := mem.Open(mem.Options{})
	defer s.Close()
	e := open(t, s, "c1")
	want := map[string]string{"zone": "a"}
	text, key := token(t, e, enroll.TokenOptions{Nodes: "gpu-*", Uses: 2, Labels: want}).Text(), newKey(t)
	r, err := ask(t, e, text, "gpu-1", key)
	if err != nil {
		t.Fatal(err)
	}
	labels := func() map[string]string {
		kv, _, _, err := s.Get(t.Context(), record.EnrolledKey("gpu-1"))
		if err != nil {
			t.Fatal(err)
		}
		rec, err := record.Decode[record.Enrolled](kv.Key, kv.Value)
		if err != nil {
			t.Fatal(err)
		}
		return rec.Labels
	}
	if diff := cmp.Diff(want, labels()); diff != "" {
		t.Errorf("enrolled (-want +got):\n%s", diff)
	}
	for name, next := range map[string]crypto.Signer{"the same key": key, "another key": newKey(t)} {
		if _, err := renew(t, e, identity(t, r, key), next); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, labels()); diff != "" {
			t.Errorf("after a renewal with %s (-want +got):\n%s", name, diff)
		}
	}
}
