package rest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// encodedOf is the JSON of a list.
func encodedOf(a answer) []byte {
	_ = a.list.each(func(part []byte) error {
		a.head = append(a.head, part...)
		return nil
	})
	return a.head
}

// A page ends before its JSON is larger than the bound; the next page goes on
// there.
func TestPagesAreBoundedInBytes(t *testing.T) {
	var items []api.Job
	for i := range 30 {
		items = append(items, api.Job{Metadata: api.ObjectMeta{
			Namespace: "a", Name: fmt.Sprintf("j%02d", i), Annotations: map[string]string{"note": strings.Repeat("x", 250<<10)},
		}})
	}
	a, err := listAnswer(service.ListedJobs, "JobList", api.ListMeta{ResourceVersion: "7"}, items, "")
	if err != nil {
		t.Fatal(err)
	}
	encoded := encodedOf(a)
	var list api.JobList
	if err := json.Unmarshal(encoded, &list); err != nil {
		t.Fatal(err)
	}
	if len(encoded) > maxPageBytes+1024 || len(list.Items) != 4 || list.Metadata.ResourceVersion != "7" || list.Kind != "JobList" {
		t.Errorf("got %d items in %d bytes, want 4 in at most %d", len(list.Items), len(encoded), maxPageBytes)
	}
	if more, at, err := service.DecodeContinue(list.Metadata.Continue); err != nil || more != "a/j03" || at != 7 {
		t.Errorf("the page goes on after %q (%v), want a/j03", more, err)
	}
	if a, err := listAnswer(service.ListedJobs, "JobList", api.ListMeta{}, nil, ""); err != nil || string(encodedOf(a)) != `{"kind":"JobList","metadata":{},"items":[]}` {
		t.Errorf("an empty list is %s (%v)", encodedOf(a), err)
	}
}
