package api_test

import (
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/api/text"
)

// Stored documents with old characters stay readable, and can be changed.
func TestStoredDocumentsMayHaveOldCharacters(t *testing.T) {
	keep := func(**int32, *string, *string) {}
	const work = `"metadata": {"name": "a", "annotations": {"note": "x\u0000\u001b"}}`
	allocation := []byte(`{` + work + `, "spec": {"resources": {"requests": {"cpu": 1}}}}`)
	if _, status := api.DecodeAllocation(allocation); status == nil || status.Code != 422 || !strings.Contains(status.Message, `metadata.annotations.note: "x\x00\x1b" has a zero byte`) {
		t.Errorf("a new allocation: %v", status)
	}
	a, status := api.StoredAllocation(allocation)
	if status != nil || a.Metadata.Annotations["note"] != "x\x00\x1b" {
		t.Fatalf("a stored allocation: %v, %v", a, status)
	}
	patch, status := api.DecodeWorkPatch(api.KindAllocation, "", "a", []byte(`{"spec": {"suspend": true}}`))
	if status != nil {
		t.Fatal(status)
	}
	if _, changed, status := patch.PatchedAllocation(allocation, a, keep); status != nil || !changed.IsSuspended() {
		t.Errorf("suspended: %v", status)
	}
	job := []byte(`{` + work + `, "spec": {"template": {"spec": {"resources": {"requests": {"cpu": 1}}}}}}`)
	j, status := api.StoredJob(job)
	if status != nil {
		t.Fatal(status)
	}
	if _, changed, status := patch.PatchedJob(job, j, keep); status != nil || !changed.IsSuspended() {
		t.Errorf("suspended: %v", status)
	}

	tenant := []byte(`{"metadata": {"name": "a"}, "spec": {"displayName": "x\u001b\n\u202ey"}}`)
	if _, status := api.DecodeTenant(tenant); status == nil || status.Code != 422 {
		t.Errorf("a new tenant: %v", status)
	}
	if got, status := text.Stored(api.DecodeTenant, tenant); status != nil || got.Spec.DisplayName != "x\uFFFD\uFFFD\uFFFDy" {
		t.Errorf("a stored tenant: %v, %v", got, status)
	}
	if _, status := text.Stored(api.DecodeTenant, []byte(`{"metadata": {"name": "\u0000"}}`)); status == nil {
		t.Error("a stored tenant without a name that can be read is read")
	}
}

// A patch brings no control characters into an object.
func TestPatchesHaveNoControlCharacters(t *testing.T) {
	for _, doc := range []string{
		`{"metadata": {"annotations": {"a": "\u0000"}}}`, `{"metadata": {"labels": {"a": "\u0085"}}}`, `{"spec": {"queue": "\u001b"}}`, `{"metadata": {"annotations": {"\u202e": "a"}}}`,
	} {
		if _, status := api.DecodeWorkPatch(api.KindJob, "", "a", []byte(doc)); status == nil || status.Code != 422 {
			t.Errorf("%s: %v, want 422", doc, status)
		}
		if _, status := api.DecodeNodePatch("a", []byte(strings.Replace(doc, "queue", "unschedulable", 1))); status == nil {
			t.Errorf("%s of a node is taken", doc)
		}
	}
}
