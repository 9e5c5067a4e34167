package enroll_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/enroll"
	"github.com/musterd/muster/coordinator/store/mem"
)

// The bounds that only the service knows are refused with 422, the field first and
// its value, and no token is made.
func TestBadWishesAreRefusedByFieldAndValue(t *testing.T) {
	s := mem.Open(mem.Options{})
	defer s.Close()
	d := enroll.Documents{Service: open(t, s, "c1")}
	wish := func(spec api.BootstrapTokenSpec, ttl time.Duration) error {
		_, err := d.PutBootstrapToken(t.Context(), &api.BootstrapToken{Spec: spec}, ttl, "boss")
		return err
	}
	certificate := func(request string, ttl time.Duration) error {
		_, err := d.CertifyOperator(t.Context(), &api.OperatorCertificate{Metadata: api.ObjectMeta{Name: "ann"}, Spec: api.OperatorCertificateSpec{Request: request}}, ttl, "boss")
		return err
	}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a pattern with a blank":          {wish(api.BootstrapTokenSpec{Nodes: "a b"}, 0), `spec.nodes: node pattern "a b"`},
		"a pattern beyond any name":       {wish(api.BootstrapTokenSpec{Nodes: strings.Repeat("z", 5000)}, 0), "spec.nodes: node pattern \"zzz"},
		"less than no uses":               {wish(api.BootstrapTokenSpec{Nodes: "*", Uses: -1}, 0), "spec.uses: -1 is outside 1..100000"},
		"too many uses":                   {wish(api.BootstrapTokenSpec{Nodes: "*", Uses: 100001}, 0), "spec.uses: 100001 is outside 1..100000"},
		"a token for a millisecond":       {wish(api.BootstrapTokenSpec{Nodes: "*"}, time.Millisecond), "spec.ttl: 1ms is outside 1s..720h0m0s"},
		"a token for a year":              {wish(api.BootstrapTokenSpec{Nodes: "*"}, 8760*time.Hour), "spec.ttl: 8760h0m0s is outside"},
		"a replacement of many nodes":     {wish(api.BootstrapTokenSpec{Nodes: "gpu-*", Replace: true}, 0), `spec.replace: true: a token that replaces a node is for one node, by its id, once: not for "gpu-*"`},
		"a request that is no PEM":        {certificate("zzz", 0), "spec.request: "},
		"a request that is another thing": {certificate("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", 0), "spec.request: "},
	} {
		t.Run(name, func(t *testing.T) {
			var status *api.Status
			if !errors.As(c.err, &status) || status.Code != 422 || !strings.HasPrefix(status.Message, c.want) {
				t.Errorf("answered %v, want 422 and %q", c.err, c.want)
			}
		})
	}
	list, err := d.ListBootstrapTokens(t.Context())
	if err != nil || len(list.Items) != 0 {
		t.Errorf("%v and %d tokens, want none", err, len(list.Items))
	}
}
