package lead

import (
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/ceiling"
	"github.com/musterd/muster/coordinator/record"
)

// A submission that waits for the change of its namespace is the submitter's all the
// same: the record names the submitter, and the submitter's ceiling counts.
func TestASubmissionThatWaitsForItsNamespaceIsItsSubmitters(t *testing.T) {
	by := func(id, person string) *record.Audit {
		return &record.Audit{Actor: record.Actor{ID: id, Person: person}, Verb: "create", Kind: "allocations"}
	}
	for name, c := range map[string]struct {
		ceiling int32
		made    string
		want    string
	}{
		"below the ceiling": {10, "ada", ""},
		"above the ceiling": {1, "", "403 spec.priority: 5 is above the priority ceiling 1 of the token"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newScene(t)
			x.ask(Put[api.Tenant]{Object: &api.Tenant{Kind: api.KindTenant, Metadata: api.ObjectMeta{Name: "vision"}}})
			x.answers()
			owner := Put[api.Namespace]{Object: &api.Namespace{Kind: api.KindNamespace, Metadata: api.ObjectMeta{Name: "default"}, Spec: api.NamespaceSpec{Tenant: "vision"}}}
			x.give(ClientRequest{1, AskedBy{by("1", "boss"), owner}})
			document := []byte(`{"metadata":{"name":"a"},"spec":{"priority":5,"resources":{"requests":{"nvidia.com/gpu":"9"}}}}`)
			doc, status := api.DecodeAllocation(document)
			if status != nil {
				t.Fatal(status)
			}
			create := CreateAllocation{Submitted: Submitted{Namespace: "default", Document: document}, Document: doc}
			x.clear()
			if x.ask(AskedBy{by("2", "ada"), Bounded{ceiling.Caller{Token: &c.ceiling}, create}}); x.work.Units["default/alloc/a/0"] != nil {
				t.Fatal("the submission did not wait")
			}
			x.spaces.paused["default"] = append(x.spaces.paused["default"], func() {}) // others wait too
			x.answers()
			made := ""
			if u := x.work.Units["default/alloc/a/0"]; u != nil {
				made = u.Record.Made.User()
			}
			if got := x.refusedWith(); made != c.made || !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
				t.Errorf("made by %q with %q, want %q with %q", made, got, c.made, c.want)
			}
		})
	}
}
