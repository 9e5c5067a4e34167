package failover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/cluster"
	"github.com/musterd/muster/test/programs"
)

// hostUsers are two users of every Debian host; root alone where this user namespace has no
// other users.
func hostUsers(t *testing.T) (ml, vision string) {
	t.Helper()
	mapped, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		t.Fatal(err)
	}
	var inside, outside, count int
	if _, err := fmt.Sscan(string(mapped), &inside, &outside, &count); err != nil {
		t.Fatal(err)
	}
	if count < 65_535 {
		return "root", "root"
	}
	return "nobody", "daemon"
}

// runs submits a job of one member with a shell script.
func runs(ctx context.Context, t *testing.T, k *sdk.Client, namespace, name, script string) {
	t.Helper()
	one, none := int32(1), int32(0)
	_, err := k.Jobs(namespace).Create(ctx, &api.Job{Metadata: api.ObjectMeta{Name: name}, Spec: api.JobSpec{
		Parallelism: &one, BackoffLimit: &none,
		Template: api.Template{Spec: api.AllocationSpec{
			Resources: api.Requirements{Requests: map[resource.Name]string{resource.CPU: "100m"}}, Command: []string{"/bin/sh", "-c", script},
		}},
	}}, sdk.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// ended waits until a job has ended, and returns its only member and the output.
func ended(ctx context.Context, t *testing.T, k *sdk.Client, namespace, name string) (api.JobMember, string) {
	t.Helper()
	var member api.JobMember
	programs.Eventually(t, cluster.Patience, "the end of "+name, func() error {
		j, err := k.Jobs(namespace).Get(ctx, name, sdk.GetOptions{})
		if err != nil {
			return err
		}
		if p := j.Status.Phase; p != api.Succeeded && p != api.Failed || len(j.Status.Allocations) != 1 {
			return fmt.Errorf("%s is %s", name, p)
		}
		member = j.Status.Allocations[0]
		return nil
	})
	var output strings.Builder
	for piece, err := range k.Jobs(namespace).Logs(ctx, name, sdk.LogOptions{}) {
		if err != nil {
			t.Error(err)
		}
		output.WriteString(piece.Text)
	}
	return member, output.String()
}

// Commands run as the user of their tenant, with the programs and configuration files that
// are installed; they outlive a kill of the agent and of the leader, and a tenant without a
// user is told so.
func TestCommandsRunAsTheUserOfTheirTenant(t *testing.T) {
	ml, vision := hostUsers(t)
	c := cluster.Start(t, cluster.Options{
		Etcd: 1, Coordinators: 2, Agents: 1, Quiet: true, CoordinatorSettings: cluster.Settings{"startsWork": true},
		AgentSettings: func(resource.NodeID) cluster.Settings {
			return cluster.Settings{"work": cluster.Settings{"users": map[string]string{"ml": ml, "vision": vision}, "allowRoot": ml == "root"}}
		},
	})
	ctx, cancel := context.WithTimeout(t.Context(), cluster.Patience)
	defer cancel()
	k := client(t, c, c.Coordinators...)
	const who = `echo "$(id -un) $USER $(id -u) $(awk '/^CapEff/ {print $2}' /proc/self/status)"; test -r ` + "$MUSTER_RUN/spec && echo reads its spec; exit 0"
	for namespace, want := range map[string]string{"ml": ml, "vision": vision} {
		runs(ctx, t, k, namespace, "who", who)
		m, output := ended(ctx, t, k, namespace, "who")
		words := strings.Fields(output)
		if m.ExitCode == nil || *m.ExitCode != 0 || len(words) < 4 || words[0] != want || words[1] != want {
			t.Errorf("tenant %s: %+v, output %q, want user %s", namespace, m, output, want)
			continue
		}
		if want != "root" && (words[2] == "0" || strings.Trim(words[3], "0") != "" || len(words) > 4) {
			t.Errorf("tenant %s has rights of the agent: %q", namespace, output)
		}
	}
	runs(ctx, t, k, "audio", "who", who)
	if m, output := ended(ctx, t, k, "audio", "who"); m.ExitReason != "NotStarted" || output != "" || !strings.Contains(m.ExitMessage, `no user for the work of tenant "audio"`) {
		t.Errorf("a tenant without a user: %+v, output %q", m, output)
	}

	open, err := os.MkdirTemp("", "muster-work") // the parent of t.TempDir is closed to other users
	if err = errors.Join(err, os.Chmod(open, 0o755)); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(open)
	goOn := filepath.Join(open, "go-on")
	runs(ctx, t, k, "ml", "long", "echo begun; until [ -e "+goOn+" ]; do sleep 0.1; done; id -un")
	running := func() error {
		j, err := k.Jobs("ml").Get(ctx, "long", sdk.GetOptions{})
		if err == nil && j.Status.Phase != api.Running {
			err = errors.New("long is " + string(j.Status.Phase))
		}
		return err
	}
	programs.Eventually(t, cluster.Patience, "the start of long", running)
	leader, epoch := c.AwaitLeader(0)
	c.Agents[0].Kill()
	leader.Kill()
	c.Agents[0].Start()
	c.AwaitLeader(epoch)
	if err := os.WriteFile(goOn, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if m, output := ended(ctx, t, client(t, c, c.Followers(leader)...), "ml", "long"); m.ExitCode == nil || *m.ExitCode != 0 || output != "begun\n"+ml+"\n" {
		t.Errorf("after the kills: %+v, output %q", m, output)
	}
}
