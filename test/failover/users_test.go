package failover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/cluster"
	"github.com/musterd/muster/test/programs"
)

// usersOf are the CPUs that a resource quota counts for each user.
func usersOf(ctx context.Context, k *sdk.Client) (map[string]string, error) {
	q, err := k.ResourceQuotas("ml").Get(ctx, "users")
	if err != nil {
		return nil, err
	}
	used := map[string]string{}
	for _, u := range q.Status.Users {
		used[u.User] = u.Used[resource.CPU]
	}
	return used, nil
}

// The sums of the users of a resource quota are the same at every coordinator, and the
// same after the leader was killed: the next leader counts them from the records, and
// refuses by them.
func TestTheSumsOfUsersOutliveTheLeader(t *testing.T) {
	c := cluster.Start(t, cluster.Options{Etcd: 1, Agents: 1, Quiet: true})
	leader, epoch := c.AwaitLeader(0)
	followers := c.Followers(leader)
	ctx, cancel := context.WithTimeout(t.Context(), cluster.Patience)
	defer cancel()
	admin := client(t, c, c.Coordinators...)
	quota := &api.ResourceQuota{Kind: api.KindResourceQuota, Metadata: api.ObjectMeta{Name: "users", Namespace: "ml"}, Spec: api.ResourceQuotaSpec{
		Hard: map[resource.Name]string{resource.CPU: "100"}, PerUser: map[resource.Name]string{resource.CPU: "2"},
	}}
	if _, err := admin.ResourceQuotas("ml").Create(ctx, quota); err != nil {
		t.Fatal(err)
	}
	as := func(user string, at ...*cluster.Process) *sdk.Client {
		made, err := admin.Tokens().Create(ctx, api.AccessTokenSpec{User: user, Role: api.RoleEditor, Tenant: "ml"})
		if err != nil {
			t.Fatal(err)
		}
		k, err := sdk.NewClient(sdk.Config{Endpoint: endpoints(at...), Token: made.Status.Token, CAFile: c.CAFile()})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	ada, bob := as("ada", followers...), as("bob", followers...)
	create := func(k *sdk.Client, name string) error {
		a := &api.Allocation{Metadata: api.ObjectMeta{Name: name}, Spec: api.AllocationSpec{
			Resources: api.Requirements{Requests: map[resource.Name]string{resource.CPU: "1"}},
		}}
		_, err := k.Allocations("ml").Create(ctx, a, sdk.CreateOptions{Wait: cluster.Patience})
		return err
	}
	job := func(k *sdk.Client, name string) error {
		j := &api.Job{Metadata: api.ObjectMeta{Name: name}}
		j.Spec.Template.Spec.Resources.Requests = map[resource.Name]string{resource.CPU: "1"}
		_, err := k.Jobs("ml").Create(ctx, j, sdk.CreateOptions{Wait: cluster.Patience})
		return err
	}
	for name, err := range map[string]error{"ada-1": create(ada, "ada-1"), "ada-2": job(ada, "ada-2"), "bob-1": create(bob, "bob-1")} {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	full := func(when string) {
		t.Helper()
		var status *api.Status
		if err := create(ada, "ada-3"); !errors.As(err, &status) || status.Code != 403 || !strings.Contains(status.Message, "ada") {
			t.Errorf("%s: a third CPU of ada: %v, want 403 with the user", when, err)
		}
	}
	want := map[string]string{"ada": "2", "bob": "1"}
	agree := func(at *cluster.Process) {
		t.Helper()
		k := client(t, c, at)
		programs.Eventually(t, cluster.Patience, at.Name+" shows the sums", func() error {
			if got, err := usersOf(ctx, k); err != nil || !maps.Equal(got, want) {
				return fmt.Errorf("%v, %v, want %v", got, err, want)
			}
			return nil
		})
	}
	for _, at := range c.Coordinators {
		agree(at)
	}
	full("before")

	leader.Kill()
	next, _ := c.AwaitLeader(epoch)
	t.Logf("%s leads after %s", next.Name, leader.Name)
	for _, at := range followers {
		agree(at)
	}
	full("after the failover")
	if _, err := ada.Allocations("ml").Delete(ctx, "ada-1", api.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	want["ada"] = "1"
	for _, at := range followers {
		agree(at)
	}
	if err := create(ada, "ada-4"); err != nil {
		t.Errorf("within the limit again: %v", err)
	}
}
