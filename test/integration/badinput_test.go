package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/programs"
)

// limited is a cluster of one agent whose namespace small may use one CPU.
func limited(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t, 1)
	c.coordinator.configure(c.coordinator.settings.set("namespaces", settings{"small": settings{"quota": settings{"cpu": "1"}}}))
	c.coordinator.start()
	c.agents[0].start()
	c.awaitLeader()
	c.awaitNodes(1)
	return c
}

// ask sends a request as it is and returns the code and the body.
func (c *cluster) ask(method, path string, header map[string]string, body io.Reader) (int, []byte) {
	c.t.Helper()
	request, err := http.NewRequestWithContext(soon(c.t), method, "http://"+c.rest+path, body)
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+adminToken)
	request.Header.Set("Content-Type", "application/json")
	for k, v := range header {
		if request.Header.Del(k); v != "" {
			request.Header.Set(k, v)
		}
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer.StatusCode, text
}

// everything is what the API shows, in one text.
func (c *cluster) everything() string {
	c.t.Helper()
	var all strings.Builder
	jobs, err := c.client.Jobs("").List(soon(c.t), sdk.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, list := range []any{jobs.Items, c.allocations(), c.freeGPUs()} {
		text, err := json.MarshalIndent(list, "", " ")
		if err != nil {
			c.t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// awaitTried waits until the scheduler has found no place for a job: what is
// shown of it says so from then on.
func (c *cluster) awaitTried(name string) {
	c.t.Helper()
	programs.Eventually(c.t, patience, "a place is looked for for "+name, func() error {
		for _, a := range c.allocations() {
			if a.Status.Job != name {
				continue
			}
			if !slices.ContainsFunc(a.Status.Conditions, func(o api.Condition) bool { return o.Reason == "WaitingForResources" }) {
				return fmt.Errorf("%s says %+v", a.Metadata.Name, a.Status.Conditions)
			}
		}
		return nil
	})
}

func TestRequestsThatAreRefusedNameTheFieldAndChangeNothing(t *testing.T) {
	t.Parallel()
	c := limited(t)
	c.submit(gang("running", 1, gpus(6)))
	c.awaitRunning("running")
	c.submit(gang("waiting", 1, gpus(8)))
	c.awaitConfirmed()
	c.awaitTried("waiting")
	before := c.everything()

	const jobs, allocations = "/api/v1/namespaces/default/jobs", "/api/v1/namespaces/default/allocations"
	asks := func(requests string) string {
		return `{"metadata":{"name":"x"},"spec":{"resources":{"requests":` + requests + `}}}`
	}
	ganged := func(parallelism, minMembers string) string {
		return `{"metadata":{"name":"x"},"spec":{"parallelism":` + parallelism + `,"template":{"spec":{"resources":{"requests":{"nvidia.com/gpu":8}},` +
			`"scheduling":{"gangScheduling":{"minMembers":` + minMembers + `}}}}}}`
	}
	for name, r := range map[string]struct {
		method, path, body string
		header             map[string]string
		code               int
		says               []string
	}{
		"an unknown field":                     {"POST", allocations, `{"metadata":{"name":"x"},"spec":{"resorces":{}}}`, nil, 400, []string{"spec.resorces"}},
		"a document cut short":                 {"POST", allocations, `{"metadata":{"name":`, nil, 400, nil},
		"a negative quantity":                  {"POST", allocations, asks(`{"cpu":"-1"}`), nil, 422, []string{"spec.resources.requests.cpu", "-1"}},
		"a quantity beyond 64 bits":            {"POST", allocations, asks(`{"memory":"99999999999999999999"}`), nil, 422, []string{"spec.resources.requests.memory", "99999999999999999999"}},
		"a quantity beyond any host":           {"POST", allocations, asks(`{"memory":"8Ei"}`), nil, 422, []string{"spec.resources.requests.memory", "8Ei"}},
		"a GPU and a half":                     {"POST", allocations, asks(`{"nvidia.com/gpu":"1500m"}`), nil, 422, []string{"nvidia.com/gpu", "1500m"}},
		"an unknown resource":                  {"POST", allocations, asks(`{"unobtainium":"1"}`), nil, 422, []string{"unobtainium"}},
		"an absurd gang":                       {"POST", jobs, ganged("1000000", "1000000"), nil, 422, []string{"spec.parallelism", "1000000", "4096"}},
		"a gang beyond 32 bits":                {"POST", jobs, ganged("99999999999", "2"), nil, 422, []string{"spec.parallelism", "99999999999"}},
		"a gang of less than nothing":          {"POST", jobs, ganged("-4", "1"), nil, 422, []string{"spec.parallelism", "-4"}},
		"more members needed than there are":   {"POST", jobs, ganged("2", "3"), nil, 422, []string{"minMembers", "3", "2"}},
		"more units than the store takes":      {"POST", jobs, ganged("4096", "1"), nil, 422, []string{"4096", "2048"}},
		"a job where an allocation belongs":    {"POST", allocations, `{"kind":"Job","metadata":{"name":"x"}}`, nil, 400, []string{"kind"}},
		"a name that is taken":                 {"POST", jobs, `{"metadata":{"name":"running"},"spec":{"template":{"spec":{"resources":{"requests":{"cpu":"1"}}}}}}`, nil, 409, []string{"running"}},
		"another namespace's name in the path": {"POST", "/api/v1/namespaces/No_Such/jobs", ganged("1", "1"), nil, 400, []string{"No_Such"}},
		"more than the namespace may use":      {"POST", "/api/v1/namespaces/small/allocations", asks(`{"cpu":"2"}`), nil, 403, []string{"cpu"}},
		"a body of 10 MB":                      {"POST", jobs, strings.Repeat(" ", 10<<20), nil, 413, []string{"1048576"}},
		"10 MB of nested arrays":               {"POST", jobs, strings.Repeat("[", 10<<20), nil, 413, []string{"1048576"}},
		"1 MB of nested arrays":                {"POST", jobs, strings.Repeat("[", 1<<20), nil, 400, nil},
		"a body that is no JSON":               {"POST", jobs, "GET / HTTP/1.1", nil, 400, nil},
		"a content type that is not known":     {"POST", jobs, ganged("1", "1"), map[string]string{"Content-Type": "text/html"}, 415, []string{"text/html"}},
		"YAML with an unknown field":           {"POST", jobs, "metadata: {name: x}\nspec: {paralelism: 2}", map[string]string{"Content-Type": "application/yaml"}, 400, []string{"spec.paralelism"}},
		"no token":                             {"GET", jobs, "", map[string]string{"Authorization": ""}, 401, []string{"Authorization"}},
		"a wrong token":                        {"DELETE", jobs + "/running", "", map[string]string{"Authorization": "Bearer 0123456789abcdef-wrong"}, 401, []string{"token"}},
		"the cluster's token":                  {"DELETE", jobs + "/running", "", map[string]string{"Authorization": "Bearer " + clusterToken}, 401, []string{"token"}},
		"another scheme":                       {"DELETE", jobs + "/running", "", map[string]string{"Authorization": "Basic " + adminToken}, 401, []string{"Bearer"}},
		"an object that is not there":          {"GET", jobs + "/nobody", "", nil, 404, []string{"nobody"}},
		"deleting what is not there":           {"DELETE", jobs + "/nobody", "", nil, 404, []string{"nobody"}},
		"cancelling what is not there":         {"POST", jobs + "/nobody/cancel", "{}", nil, 404, []string{"nobody"}},
		"a node that is not there":             {"GET", "/api/v1/nodes/nobody", "", nil, 404, []string{"nobody"}},
		"a path that is not there":             {"GET", "/api/v1/gizmos", "", nil, 404, nil},
		"a method that is not there":           {"PUT", jobs + "/running", "{}", nil, 405, nil},
		"a wait without a unit":                {"GET", jobs + "/running?wait=10", "", nil, 400, []string{"wait", "10"}},
		"a wait of a year":                     {"GET", jobs + "/running?wait=8760h", "", nil, 400, []string{"wait", "8760h"}},
		"an unknown parameter":                 {"GET", jobs + "?colour=red", "", nil, 400, []string{"colour"}},
		"a label selector that is none":        {"GET", jobs + "?labelSelector=a%3D%3D%3Db", "", nil, 400, []string{"labelSelector"}},
		"a negative grace":                     {"DELETE", jobs + "/running", `{"gracePeriodSeconds":-1}`, nil, 422, []string{"gracePeriodSeconds", "-1"}},
		"a node patch of its capacity":         {"PATCH", "/api/v1/nodes/node-0", `{"spec":{"capacity":{}}}`, map[string]string{"Content-Type": "application/merge-patch+json"}, 400, []string{"spec.capacity"}},
	} {
		code, body := c.ask(r.method, r.path, r.header, strings.NewReader(r.body))
		var status api.Status
		if err := json.Unmarshal(body, &status); err != nil || status.Kind != "Status" || status.Code != code || status.Reason == "" {
			t.Errorf("%s: %d is not answered with a Status: %.300s", name, code, body)
			continue
		}
		if code != r.code {
			t.Errorf("%s: answered with %d %s, want %d", name, code, status.Message, r.code)
		}
		for _, want := range r.says {
			if !strings.Contains(status.Message, want) {
				t.Errorf("%s: %q does not name %q", name, status.Message, want)
			}
		}
		if after := c.everything(); after != before {
			t.Fatalf("%s changed something (-before +after):\n%s", name, cmp.Diff(before, after))
		}
	}
	// An endless body is cut off, whatever length it announces.
	request, err := http.NewRequestWithContext(soon(t), http.MethodPost, "http://"+c.rest+jobs, io.LimitReader(zeros{}, 64<<20))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+adminToken)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err == nil { // the server may close before it has read what is sent
		answer.Body.Close()
		if answer.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("64 MB of unannounced length: answered with %s, want 413", answer.Status)
		}
	}
	if after := c.everything(); after != before {
		t.Fatalf("the endless body changed something (-before +after):\n%s", cmp.Diff(before, after))
	}
}

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '0'
	}
	return len(b), nil
}

func TestGangThatNoClusterCouldHoldWaitsAndIsExplained(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	c.submit(gang("huge", 2000, gpus(8)))
	c.wantPhase("huge", api.Queued)
	why, err := c.client.Jobs(namespace).Explain(soon(t), "huge", sdk.ExplainOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if why.Members != 2000 || why.Fit != 1 || !strings.Contains(why.Summary, "15992 GPUs short") {
		t.Errorf("huge is explained by %d of %d members: %q; want 1 of 2000, short of 15992 GPUs", why.Fit, why.Members, why.Summary)
	}
	c.submit(gang("small", 1, gpus(8)))
	c.awaitRunning("small")
	c.remove("huge")
}

func TestBrokenConfigIsRefusedByFileAndField(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	type refusal struct {
		path  string
		value any
		says  string // beside the field's name
	}
	both := []refusal{
		{"dataDir", "relative/folder", "relative/folder"},
		{"cluster", "Not A Name", "Not A Name"},
		{"colour", "red", "colour"},
		{"log.level", "loud", "loud"},
		{"log.format", "xml", "xml"},
		{"gossip.serfBind", "127.0.0.1", "127.0.0.1"},
		{"gossip.serfBind", "127.0.0.1:66000", "66000"},
		{"gossip.join", []string{"10.0.0.1:7946"}, "10.0.0.1:7946"},
		{"gossip.join", "127.0.0.1:7946", "join"},
	}
	own := map[*daemon][]refusal{
		c.coordinator: {
			{"id", "NO", "NO"},
			{"leaseTTL", "1ms", "1ms"},
			{"adminTokenFile", "", "adminTokenFile"},
			{"namespaces.small.quota.cpu", "-1", "-1"},
			{"namespaces.small.quota.gold", "1", "gold"},
			{"namespaces.small.admission", "perhaps", "perhaps"},
		},
		c.agents[0]: {
			{"nodeID", "NO", "NO"},
			{"heartbeat", "1ns", "1ns"},
			{"reserved.memory", "-1Gi", "-1Gi"},
			{"reserved.cpus", "3-1", "3-1"},
			{"coordinators", []string{"192.0.2.1:8471"}, "192.0.2.1:8471"},
			{"gossip.cell", "No", "No"},
		},
	}
	for d, more := range own {
		for _, r := range append(both[:len(both):len(both)], more...) {
			d.configure(d.settings.clone().set(r.path, r.value))
			d.refuses(2, nil, d.file, r.path[strings.LastIndex(r.path, ".")+1:], r.says)
		}
		for what, text := range map[string]string{"no YAML": "a: [", "a list": "- a\n", "a key twice": "cluster: a\ncluster: b\n", "a 2 MB file": strings.Repeat("#", 2<<20)} {
			write(t, d.file, []byte(text), 0o600)
			t.Logf("with %s for a config:", what)
			d.refuses(2, nil, d.file)
		}
		if err := os.Remove(d.file); err != nil {
			t.Fatal(err)
		}
		d.refuses(2, nil, d.file)
		d.refuses(2, []string{"--frobnicate"}, "frobnicate")
		d.refuses(2, []string{"surplus"}, "surplus")
		if exists(d.dataDir) {
			t.Errorf("%s made its data folder although it refused to start", d.name)
		}
	}
}

func TestPortInUseIsRefusedByField(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().String()
	for d, fields := range map[*daemon]map[string]string{
		c.coordinator: {
			"restListen": "restListen", "grpcListen": "grpcListen", "gossip.serfBind": "serf", "gossip.capacityBind": "capacity", "gossip.serfRPC": "RPC",
		},
		c.agents[0]: {
			"listen": "listen", "metricsListen": "metricsListen", "gossip.serfBind": "serf", "gossip.capacityBind": "capacity", "gossip.serfRPC": "RPC",
		},
	} {
		for field, says := range fields {
			d.configure(d.settings.clone().set(field, taken))
			d.refuses(1, nil, says, taken, "in use")
		}
		// What was tried left nothing behind that keeps it from starting.
		d.configure(d.settings)
	}
	c.coordinator.start()
	c.agents[0].start()
	c.awaitLeader()
	c.awaitNodes(1)
}

func TestDataFolderOfARunningProgramIsRefusedToASecond(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	c.submit(gang("training", 1, gpus(8)))
	c.awaitRunning("training")
	c.awaitConfirmed()
	before := c.everything()
	ports := freePorts(t, 5)
	second := map[*daemon]settings{
		c.coordinator: c.coordinator.settings.clone().set("restListen", loopback(ports[0])).set("grpcListen", loopback(ports[1])).
			set("gossip.serfBind", loopback(ports[2])).set("gossip.capacityBind", loopback(ports[3])).set("gossip.serfRPC", loopback(ports[4])),
		c.agents[0]: c.agents[0].settings.clone().set("listen", loopback(ports[0])).set("metricsListen", loopback(ports[1])).
			set("gossip.serfBind", loopback(ports[2])).set("gossip.capacityBind", loopback(ports[3])).set("gossip.serfRPC", loopback(ports[4])),
	}
	for d, other := range second {
		file := d.file
		d.file = filepath.Join(t.TempDir(), "second.yaml")
		d.configure(other)
		d.refuses(1, nil, d.dataDir, fmt.Sprint(d.process.cmd.Process.Pid))
		d.file = file
	}
	if after := c.everything(); after != before {
		t.Errorf("the attempts changed something (-before +after):\n%s", cmp.Diff(before, after))
	}
	c.remove("training")
}

// The head of a body must be enough to refuse it.
func TestLargeBodyIsRefusedBeforeItIsSent(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 0)
	connection, err := net.Dial("tcp", c.rest)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	fmt.Fprintf(connection, "POST /api/v1/namespaces/default/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: 10000000\r\n\r\n", adminToken)
	answer := make([]byte, 4096)
	n, err := connection.Read(answer)
	if err != nil || !bytes.HasPrefix(answer[:n], []byte("HTTP/1.1 413 ")) {
		t.Errorf("answered with %q, %v; want 413", answer[:n], err)
	}
}
