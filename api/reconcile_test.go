package api_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
)

func TestReconcileOptions(t *testing.T) {
	five := int64(5)
	cases := map[string]struct {
		document string
		want     api.ReconcileOptions
		wantErr  string
	}{
		"an empty body only looks":  {"", api.ReconcileOptions{}, ""},
		"all of it":                 {`{"mode":"adopt","gracePeriodSeconds":5}`, api.ReconcileOptions{Mode: api.ReconcileAdopt, GracePeriodSeconds: &five}, ""},
		"a mode that there is not":  {`{"mode":"forget"}`, api.ReconcileOptions{}, `mode: "forget": want adopt, release`},
		"a grace before the notice": {`{"mode":"release","gracePeriodSeconds":-1}`, api.ReconcileOptions{}, "gracePeriodSeconds: -1"},
		"a field that is misspelt":  {`{"adopt":true}`, api.ReconcileOptions{}, "adopt: unknown field"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, status := api.DecodeReconcileOptions([]byte(c.document))
			if diff := cmp.Diff(c.want, got); diff != "" || (status != nil) != (c.wantErr != "") || status != nil && !strings.Contains(status.Message, c.wantErr) {
				t.Errorf("%v, want %q; %s", status, c.wantErr, diff)
			}
		})
	}
}

func FuzzDecodeReconcileOptions(f *testing.F) {
	for _, doc := range []string{"", "{}", `{"mode":"adopt","gracePeriodSeconds":5}`, `{"mode":7}`, "[", `{"mode":"release","mode":"adopt"}`} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		if o, status := api.DecodeReconcileOptions(doc); status != nil && o != (api.ReconcileOptions{}) {
			t.Errorf("refused with %v, and %+v", status, o)
		}
	})
}
