package sdk_test

import (
	"errors"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// TestWorkIsSuspendedResumedAndScaled by the calls of each kind.
func TestWorkIsSuspendedResumedAndScaled(t *testing.T) {
	_, client := serve(t, nil)
	ctx, allocations, jobs := t.Context(), client.Allocations("ml-team"), client.Jobs("ml-team")
	held := true
	a := &api.Allocation{Metadata: api.ObjectMeta{Name: "a"}, Spec: allocation("", "4").Spec}
	a.Spec.Suspend = &held
	if made, err := allocations.Create(ctx, a, sdk.CreateOptions{}); err != nil || made.Status.Conditions[0].Reason != "Suspended" {
		t.Fatalf("create: %+v, %v", made, err)
	}
	if got, err := allocations.Resume(ctx, "a"); err != nil || got.IsSuspended() {
		t.Errorf("resume: %+v, %v", got, err)
	}
	if got, err := allocations.Suspend(ctx, "a"); err != nil || !got.IsSuspended() {
		t.Errorf("suspend: %+v, %v", got, err)
	}
	j := &api.Job{Metadata: api.ObjectMeta{Name: "j"}, Spec: api.JobSpec{Suspend: &held}}
	j.Spec.Template.Spec = allocation("", "4").Spec
	if _, err := jobs.Create(ctx, j, sdk.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := jobs.Scale(ctx, "j", 3); err != nil || len(got.Status.Allocations) != 3 || !got.IsSuspended() {
		t.Errorf("scale: %+v, %v", got, err)
	}
	var status *api.Status
	if _, err := jobs.Scale(ctx, "j", 0); !errors.As(err, &status) || status.Code != 422 {
		t.Errorf("no members: %v, want a Status 422", err)
	}
	if got, err := jobs.Resume(ctx, "j"); err != nil || got.IsSuspended() {
		t.Errorf("resume of the job: %+v, %v", got, err)
	}
	if got, err := jobs.Suspend(ctx, "j"); err != nil || !got.IsSuspended() {
		t.Errorf("suspend of the job: %+v, %v", got, err)
	}
}
