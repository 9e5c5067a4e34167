package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
)

// A namespace without a ceiling is described with that of tenants, and another one with
// its own.
func TestDescribeSaysTheCeilingOfANamespace(t *testing.T) {
	high, own := int32(1000), int32(5000)
	for want, set := range map[string]*int32{"none (roles of tenants: 1000)": nil, "5000": &own, "1000": &high} {
		var out bytes.Buffer
		a := &app{Program: Program{Stdout: &out}}
		a.describeNamespace(&api.Namespace{Metadata: api.ObjectMeta{Name: "ml"}, Spec: api.NamespaceSpec{PriorityCeiling: set}})
		if _, text, _ := strings.Cut(out.String(), "Priority ceiling:"); !strings.HasPrefix(strings.TrimSpace(text), want+"\n") {
			t.Errorf("want %q in\n%s", want, out.String())
		}
	}
}
