package api_test

import (
	"strings"
	"testing"

	"github.com/musterd/muster/api"
)

func TestFenceOptions(t *testing.T) {
	cases := map[string]struct {
		document string
		want     api.FenceOptions
		wantErr  string
	}{
		"an empty body fences and no more": {"", api.FenceOptions{}, ""},
		"all of it":                        {`{"confirmDead":true,"force":true,"reason":"burnt"}`, api.FenceOptions{ConfirmDead: true, Force: true, Reason: "burnt"}, ""},
		"a field that is misspelt":         {`{"confirm-dead":true}`, api.FenceOptions{}, "confirm-dead: unknown field"},
		"a reason without end":             {`{"reason":"` + strings.Repeat("x", 1025) + `"}`, api.FenceOptions{}, "reason: 1025 bytes long"},
		"no object":                        {`7`, api.FenceOptions{}, "object"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, status := api.DecodeFenceOptions([]byte(c.document))
			if got != c.want || (status != nil) != (c.wantErr != "") || status != nil && !strings.Contains(status.Message, c.wantErr) {
				t.Errorf("%+v, %v; want %+v, %q", got, status, c.want, c.wantErr)
			}
		})
	}
}

func FuzzDecodeFenceOptions(f *testing.F) {
	for _, doc := range []string{"", "{}", `{"confirmDead":true,"force":true,"reason":"burnt"}`, `{"reason":7}`, "[", `{"force":true,"force":false}`} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		if o, status := api.DecodeFenceOptions(doc); status != nil && o != (api.FenceOptions{}) {
			t.Errorf("refused with %v, and %+v", status, o)
		}
	})
}
