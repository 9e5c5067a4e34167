package resttest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/resttest"
)

// office is a cluster with a quota for each user, and people who submit work.
type office struct {
	t *testing.T
	*resttest.Cluster
}

func (o office) as(user string) context.Context {
	ctx := service.WithCaller(o.t.Context(), service.Caller{Principal: service.Principal{Name: user, Tenant: "a"}, RequestID: "r-" + user})
	service.Begin(ctx, service.VerbCreate, service.KindAllocations, "a", "")
	return ctx
}

// job submits a job of one member, which waits where it is over quota.
func (o office) job(user, name, cpus string) {
	o.t.Helper()
	document := []byte(`{"metadata":{"name":"` + name + `"},"spec":{"template":{"spec":{"resources":{"requests":{"cpu":"` + cpus + `"}}}}}}`)
	doc, status := api.DecodeJob(document)
	if status != nil {
		o.t.Fatal(status)
	}
	if _, err := o.CreateJob(o.as(user), service.Create{Namespace: "a", Document: document}, doc); err != nil {
		o.t.Fatal(err)
	}
}

func (o office) allocation(user, name, cpus string) error {
	document := []byte(`{"metadata":{"name":"` + name + `"},"spec":{"resources":{"requests":{"cpu":"` + cpus + `"}}}}`)
	doc, status := api.DecodeAllocation(document)
	if status != nil {
		o.t.Fatal(status)
	}
	_, err := o.CreateAllocation(o.as(user), service.Create{Namespace: "a", Document: document}, doc)
	return err
}

// runs reports whether a job runs.
func (o office) runs(name string) bool {
	o.t.Helper()
	j, err := o.GetJob(o.t.Context(), "a", name, 0)
	if err != nil {
		o.t.Fatal(err)
	}
	return j.Status.Phase == api.Running
}

func (o office) limit(cpus string) {
	o.t.Helper()
	q := &api.ResourceQuota{
		APIVersion: api.APIVersion, Kind: api.KindResourceQuota, Metadata: api.ObjectMeta{Name: "q", Namespace: "a"},
		Spec: api.ResourceQuotaSpec{PerUser: map[resource.Name]string{"cpu": cpus}},
	}
	if _, err := o.CreateResourceQuota(o.as("root"), q); err != nil {
		o.t.Fatal(err)
	}
}

// used is the use of each user as the quota shows it.
func (o office) used() string {
	o.t.Helper()
	q, err := o.GetResourceQuota(o.t.Context(), "a", "q")
	if err != nil {
		o.t.Fatal(err)
	}
	text, err := json.Marshal(q.Status.Users)
	if err != nil {
		o.t.Fatal(err)
	}
	return string(text)
}

// A user at the own limit waits alone: the work of others in the same namespace, of the
// same shape and submitted later, goes on.
func TestAUserWaitsForTheOwnLimitAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := office{t, resttest.New(time.Now, resttest.Node{Name: "n", CPUs: 8, Memory: 8 << 30})}
		o.limit("2")
		if err := o.allocation("ada", "a1", "2"); err != nil {
			t.Fatal(err)
		}
		err := o.allocation("ada", "a2", "1")
		if status, is := err.(*api.Status); !is || status.Code != http.StatusForbidden || !strings.Contains(status.Message, "exceeded quota: cpu limit 2 per user, requested 1, used 2 by ada") {
			t.Errorf("beyond the own limit: %v", err)
		}
		o.job("ada", "j1", "1")
		o.job("bob", "j2", "1")
		if o.runs("j1") || !o.runs("j2") {
			t.Errorf("ada's job runs: %t, bob's: %t", o.runs("j1"), o.runs("j2"))
		}
		if got, want := o.used(), `[{"user":"ada","used":{"cpu":"2"}},{"user":"bob","used":{"cpu":"1"}}]`; got != want {
			t.Errorf("the use is %s, want %s", got, want)
		}
		if _, err := o.DeleteAllocation(o.as("ada"), "a", "a1", api.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if !o.runs("j1") {
			t.Error("ada's job waits although nothing of hers runs")
		}
	})
}

// A limit for each user that comes while work waits tells the waiting work apart by its
// users, and no more once it goes.
func TestALimitForEachUserComesWhileWorkWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := office{t, resttest.New(time.Now, resttest.Node{Name: "n", CPUs: 4, Memory: 8 << 30})}
		if err := o.allocation("ada", "a1", "4"); err != nil {
			t.Fatal(err)
		}
		o.job("ada", "j1", "3")
		o.job("bob", "j2", "3")
		o.limit("2")
		if err := o.allocation("eve", "e1", "3"); err == nil {
			t.Error("eve gets 3 CPUs beyond the limit of 2")
		}
		if _, err := o.DeleteAllocation(o.as("ada"), "a", "a1", api.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if o.runs("j1") || o.runs("j2") {
			t.Error("a job of 3 CPUs runs beyond the limit of 2")
		}
		if _, err := o.DeleteResourceQuota(o.as("root"), "a", "q", api.Preconditions{}); err != nil {
			t.Fatal(err)
		}
		if !o.runs("j1") || o.runs("j2") {
			t.Errorf("without the limit ada's job runs: %t, bob's: %t", o.runs("j1"), o.runs("j2"))
		}
	})
}
