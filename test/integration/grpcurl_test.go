package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/programs"
)

// documentedCalls are the calls of grpcurl that docs/api.md shows.
func documentedCalls(t *testing.T) []string {
	t.Helper()
	root, err := programs.Root()
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	for line := range strings.Lines(string(read(t, filepath.Join(root, "docs", "api.md")))) {
		if strings.HasPrefix(line, "grpcurl ") {
			calls = append(calls, strings.TrimSpace(line))
		}
	}
	return calls
}

// TestStockGRPCurlWorksAsDocumented: the stock grpcurl lists, describes and calls
// the API over TLS with the authority's file and one header, as docs/api.md shows.
func TestStockGRPCurlWorksAsDocumented(t *testing.T) {
	t.Parallel()
	folder := filepath.Dir(stockProgram(t, "grpcurl", "github.com/fullstorydev/grpcurl/cmd/grpcurl"))
	c := newCluster(t, 1)
	c.secure()
	c.awaitNodes(1)
	web := &api.Allocation{Metadata: api.ObjectMeta{Name: "web"}}
	web.Spec.Resources.Requests = gpus(1)
	if _, err := c.client.Allocations(namespace).Create(soon(t), web, sdk.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(c.coordinator.dataDir, "tls", "ca.pem")
	as := func(line string) string {
		return strings.NewReplacer("/var/lib/muster/tls/ca.pem", ca, "coordinator-1:8470", c.rest).Replace(line)
	}
	env := []string{"MUSTER_TOKEN=" + adminToken, "PATH=" + folder + string(os.PathListSeparator) + os.Getenv("PATH")}
	shell := func(line string) (stdout, stderr string, code int) {
		t.Helper()
		return execute(t, env, "sh", "-c", as(line))
	}
	want := map[string][]string{
		" list":                             {"muster.api.v1.Allocations\n", "muster.api.v1.Tenants\n", "grpc.health.v1.Health\n"},
		" describe ":                        {"service Allocations {", "rpc Watch ( .muster.api.v1.WatchRequest ) returns ( stream .muster.api.v1.AllocationWatchEvent );"},
		" muster.api.v1.Allocations/List":   {`"name": "web"`, `"resourceVersion": "`},
		" muster.api.v1.Allocations/Create": {`"name": "train"`, `"kind": "Allocation"`},
		" grpc.health.v1.Health/Check":      {`"status": "SERVING"`},
	}
	calls := documentedCalls(t)
	for _, line := range calls {
		stdout, stderr, code := shell(line)
		if code != 0 {
			t.Errorf("%s ended with code %d: %s%s", line, code, stdout, stderr)
		}
		for call, parts := range want {
			if !strings.Contains(line, call) {
				continue
			}
			for _, part := range parts {
				if !strings.Contains(stdout, part) {
					t.Errorf("%s lacks %q:\n%s", line, part, stdout)
				}
			}
			delete(want, call)
		}
	}
	for call := range want {
		t.Errorf("docs/api.md shows no call of%s", call)
	}
	const curl = `grpcurl -cacert /var/lib/muster/tls/ca.pem -H "authorization: Bearer $MUSTER_TOKEN" `
	for what, refused := range map[string]struct {
		line string
		says []string
	}{
		"a stranger's token": {strings.ReplaceAll(curl, "$MUSTER_TOKEN", "nobody") + "coordinator-1:8470 muster.api.v1.Nodes/List", []string{"Code: Unauthenticated"}},
		"no trust":           {strings.ReplaceAll(curl, "-cacert /var/lib/muster/tls/ca.pem", "") + "coordinator-1:8470 list", []string{"certificate signed by unknown authority"}},
		"a bad quantity": {
			curl + `-d '{"namespace": "default", "allocation": {"metadata": {"name": "bad"}, "spec": {"resources": {"requests": {"cpu": "many"}}}}}' coordinator-1:8470 muster.api.v1.Allocations/Create`,
			[]string{"Code: InvalidArgument", "google.rpc.ErrorInfo", "muster.v1.Refusal", `spec.resources.requests`},
		},
		"two faults of a document": {
			curl + `-d '{"namespace": "default", "allocation": {"metadata": {"name": "A_B"}, "spec": {"resources": {"requests": {"cpu": "many"}}}}}' coordinator-1:8470 muster.api.v1.Allocations/Create`,
			[]string{"Code: InvalidArgument", "google.rpc.BadRequest", "fieldViolations", `"field": "metadata.name"`, `"field": "spec.resources.requests.cpu"`},
		},
		"a ban by the name of no node": {
			curl + `-d '{"metadata": {"name": "A_B"}}' coordinator-1:8470 muster.api.v1.NodeBans/Create`, []string{"Code: InvalidArgument", "A_B"},
		},
	} {
		_, stderr, code := shell(refused.line)
		if code == 0 {
			t.Errorf("%s is accepted", what)
		}
		for _, part := range refused.says {
			if !strings.Contains(stderr, part) {
				t.Errorf("%s: %q lacks %q", what, stderr, part)
			}
		}
	}
	callsOfIdentities(t, func(call, body string) string {
		t.Helper()
		stdout, stderr, code := shell(curl + "-d '" + body + "' coordinator-1:8470 muster.api.v1." + call)
		if code != 0 {
			t.Fatalf("%s %s: %s%s", call, body, stdout, stderr)
		}
		return stdout
	})
	watch := launch(t, "grpcurl that watches", env, "sh", "-c", "exec "+as(curl+`-d '{"namespace": "default"}' coordinator-1:8470 muster.api.v1.Allocations/Watch`))
	programs.Eventually(t, patience, "grpcurl shows the watch", func() error {
		text := watch.stdout.String()
		for _, part := range []string{`"type": "ADDED"`, `"name": "web"`, `"type": "BOOKMARK"`} {
			if !strings.Contains(text, part) {
				return fmt.Errorf("%q lacks %q", text, part)
			}
		}
		return nil
	})
}

// callsOfIdentities goes through the kinds about rights and identities of a cluster
// with TLS, as the stock grpcurl calls them.
func callsOfIdentities(t *testing.T, call func(method, body string) string) {
	t.Helper()
	has := func(answer string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(answer, part) {
				t.Errorf("%q lacks %q", answer, part)
			}
		}
	}
	name := func(answer string) string {
		t.Helper()
		_, rest, _ := strings.Cut(answer, `"name": "`)
		id, _, found := strings.Cut(rest, `"`)
		if !found {
			t.Fatalf("%q has no name", answer)
		}
		return id
	}
	made := call("AccessTokens/Create", `{"spec": {"user": "ada", "role": "editor", "tenant": "vision"}}`)
	has(made, `"token": "muster.at-`)
	has(call("AccessTokens/Rotate", `{"name": "`+name(made)+`"}`), `"secrets": "2"`)
	has(call("AccessTokens/List", `{"fieldSelector": "spec.tenant=vision"}`), `"user": "ada"`)
	has(call("AccessTokens/Delete", `{"name": "`+name(made)+`"}`), name(made))
	has(call("RoleBindings/Create", `{"kind": "RoleBinding", "metadata": {"name": "vision.editors"}, "spec": {"role": "editor", "tenant": "vision", "subjects": [{"kind": "User", "name": "ada"}]}}`), `"uid": "rolebinding-`)
	has(call("RoleBindings/Patch", `{"name": "vision.editors", "patch": {"spec": {"role": "viewer"}}}`), `"role": "viewer"`)
	has(call("RoleBindings/Delete", `{"name": "vision.editors"}`), "vision.editors")
	ticket := call("BootstrapTokens/Create", `{"spec": {"nodes": "gpu-*", "uses": 16}}`)
	has(ticket, `"token": "muster-boot.`, `"uses": "16"`)
	has(call("BootstrapTokens/List", `{}`), name(ticket))
	has(call("BootstrapTokens/Delete", `{"name": "`+name(ticket)+`"}`), name(ticket))
	has(call("Authorities/List", `{}`), `"signs": true`, "BEGIN CERTIFICATE")
	has(call("NodeBans/Create", `{"metadata": {"name": "gpu-99"}, "spec": {"reason": "stolen disk"}}`), `"banned": true`)
	has(call("NodeBans/List", `{}`), "gpu-99", "stolen disk")
	has(call("NodeBans/Delete", `{"name": "gpu-99"}`), "gpu-99")
	has(call("OperatorCertificates/List", `{}`), `"kind": "OperatorCertificateList"`)
}
