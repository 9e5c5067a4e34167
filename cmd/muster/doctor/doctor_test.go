package doctor

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/serf/client"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// A fakeCluster is one coordinator that answers as a healthy one does, unless a
// path has another answer.
type fakeCluster struct {
	answers map[string]http.HandlerFunc // by path
	ahead   time.Duration               // of its clock
}

func (c *fakeCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", time.Now().Add(c.ahead).UTC().Format(http.TimeFormat))
	if answer, ok := c.answers[r.URL.Path]; ok {
		answer(w, r)
		return
	}
	give := map[string]any{
		"/version":                     api.Version{Version: "v1", APIVersion: api.APIVersion},
		"/readyz":                      api.Coordinator{ID: "c1", Role: api.LeaderRole},
		"/api/v1/coordinators":         api.CoordinatorList{Items: []api.Coordinator{{ID: "c1", Role: api.LeaderRole}}},
		"/api/v1/nodes":                api.NodeList{Items: []api.Node{node("gpu-1")}},
		"/api/v1/resourcequotas":       api.ResourceQuotaList{},
		"/api/v1/quotatrees":           api.QuotaTreeList{},
		"/api/v1/authorities":          api.AuthorityList{},
		"/api/v1/operatorcertificates": api.OperatorCertificateList{},
	}[r.URL.Path]
	if give == nil {
		http.NotFound(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(give)
}

// with answers a path by a document.
func (c *fakeCluster) with(path string, document any) *fakeCluster {
	return c.answering(path, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(document) })
}

func (c *fakeCluster) answering(path string, h http.HandlerFunc) *fakeCluster {
	if c.answers == nil {
		c.answers = map[string]http.HandlerFunc{}
	}
	c.answers[path] = h
	return c
}

// refusing answers a path by a Status.
func (c *fakeCluster) refusing(path string, code int, message string) *fakeCluster {
	return c.because(path, api.Errorf(code, "%s", message))
}

// because refuses requests for a path with a status.
func (c *fakeCluster) because(path string, status *api.Status) *fakeCluster {
	return c.answering(path, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status.Code)
		_ = json.NewEncoder(w).Encode(status)
	})
}

// node is a healthy one with GPUs, CPUs and memory.
func node(name string, conditions ...api.Condition) api.Node {
	n := api.Node{Metadata: api.ObjectMeta{Name: name}}
	n.Status.Capacity = map[resource.Name]string{resource.CPU: "8", resource.Memory: "16Gi", resource.GPU: "8"}
	n.Status.Phase = "Ready"
	n.Status.Addresses = []api.NodeAddress{{Type: "Hostname", Address: name}, {Type: "Agent", Address: "10.0.0." + strconv.Itoa(len(name)) + ":8472"}}
	n.Status.Conditions = append([]api.Condition{{Type: "Ready", Status: "True", Reason: "AgentReady"}}, conditions...)
	return n
}

// broken is a node whose agent is not heard, for a reason.
func broken(name, phase, reason, message string) api.Node {
	n := node(name)
	n.Status.Phase = phase
	n.Status.Conditions[0] = api.Condition{Type: "Ready", Status: "False", Reason: reason, Message: message, LastTransitionTime: "2026-02-20T08:00:00Z"}
	return n
}

// registered is a node of this version that registered eight times, in intervals.
func registered(name, version string, now time.Time, apart time.Duration) api.Node {
	n := node(name)
	n.Status.AgentVersion = version
	for i := range 8 {
		n.Status.Registrations = append(n.Status.Registrations, now.Add(time.Duration(i-8)*apart).UTC().Format(time.RFC3339))
	}
	return n
}

func nodes(items ...api.Node) api.NodeList { return api.NodeList{Items: items} }

// options look at one endpoint without much patience.
func options(endpoint string) Options {
	return Options{Endpoints: []string{endpoint}, Token: "secret-token-of-the-test", Version: "v1", Patience: 5 * time.Second}
}

// found is a report's findings as lines, without notes' remedies.
func found(r Report) string {
	var lines []string
	for _, f := range r.Findings {
		lines = append(lines, string(f.Severity)+": "+f.Check+": "+f.Subject+": "+f.Message+" => "+f.Remedy)
	}
	return strings.Join(lines, "\n")
}

func TestEachFaultOfAClusterIsFound(t *testing.T) {
	now := time.Now()
	quota := func(names ...resource.Name) api.ResourceQuotaList {
		q := api.ResourceQuota{Metadata: api.ObjectMeta{Name: "q", Namespace: "ml"}}
		q.Spec.Hard = map[resource.Name]string{}
		for _, name := range names {
			q.Spec.Hard[name] = "1"
		}
		return api.ResourceQuotaList{Items: []api.ResourceQuota{q}}
	}
	tests := map[string]struct {
		cluster *fakeCluster
		want    []string // each in one finding, "" none at all
	}{
		"a healthy cluster": {&fakeCluster{}, nil},
		"a clock that is behind": {
			&fakeCluster{ahead: -30 * time.Second}, []string{"warning: clock: ", "s behind this host's (±", "timedatectl set-ntp true"},
		},
		"a clock that is far ahead":       {&fakeCluster{ahead: time.Hour}, []string{"error: clock: ", "ahead of this host's"}},
		"a store without space":           {(&fakeCluster{}).because("/readyz", api.Errorf(503, "no store").Because(api.StoreOutOfSpace)), []string{"error: readiness: ", "=> muster delete job", "etcdctl defrag --cluster; etcdctl alarm disarm"}},
		"a coordinator that is not ready": {(&fakeCluster{}).refusing("/readyz", 503, "no store"), []string{"error: readiness: ", "is not ready: no store"}},
		"a token that nobody knows": {
			(&fakeCluster{}).refusing("/api/v1/nodes", 401, "unknown token"), []string{"error: access: token: the coordinator refuses the token: 401 unknown token", "--token TOKEN"},
		},
		"a token without the right": {(&fakeCluster{}).refusing("/api/v1/nodes", 403, "nodes"), []string{"error: access: token: the coordinator refuses the token: 403 nodes", "ask an admin"}},
		"another program at the address": {
			(&fakeCluster{}).answering("/version", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }),
			[]string{"error: reachability: ", "some other program answers there", "200 OK"},
		},
		"another version of the coordinator": {
			(&fakeCluster{}).with("/version", api.Version{Version: "v2", APIVersion: api.APIVersion}), []string{"warning: versions: muster: this program is v1, the coordinators are v2"},
		},
		"another API": {(&fakeCluster{}).with("/version", api.Version{Version: "v1", APIVersion: "muster/v9"}), []string{"error: versions: ", "it speaks API muster/v9, and this program " + api.APIVersion}},
		"nobody leads": {
			(&fakeCluster{}).with("/api/v1/coordinators", api.CoordinatorList{Items: []api.Coordinator{{ID: "c1", Role: api.FollowerRole}, {ID: "c2", Role: api.FollowerRole}}}),
			[]string{"error: readiness: leader: none of 2 coordinators leads: nothing is placed"},
		},
		"a coordinator that the others do not hear": {
			(&fakeCluster{}).with("/api/v1/coordinators", api.CoordinatorList{Items: []api.Coordinator{{ID: "c1", Role: api.LeaderRole}, {ID: "c2", Message: "does not answer"}}}),
			[]string{"error: readiness: c2: the other coordinators do not hear this one: does not answer"},
		},
		"a coordinator that is behind": {
			(&fakeCluster{}).with("/api/v1/coordinators", api.CoordinatorList{Items: []api.Coordinator{{ID: "c1", Role: api.LeaderRole}, {ID: "c2", Role: api.FollowerRole, Behind: 20000}}}),
			[]string{"warning: readiness: c2: its view is 20000 revisions behind the newest"},
		},
		"a node that nobody hears": {
			(&fakeCluster{}).with("/api/v1/nodes", nodes(broken("gpu-1", "NotReady", "LeaseExpired", "not heard for 2m"))),
			[]string{"error: nodes: gpu-1: NotReady since 2026-02-20T08:00:00Z (LeaseExpired): not heard for 2m", "muster fence gpu-1"},
		},
		"a node whose disk is full": {
			(&fakeCluster{}).with("/api/v1/nodes", nodes(node("gpu-1", api.Condition{Type: "DiskPressure", Status: "True", Reason: "JournalFull", Message: "no new reservations"}))),
			[]string{"error: nodes: gpu-1: its disk is full (JournalFull): no new reservations", "df -h"},
		},
		"a node that is short of memory": {
			(&fakeCluster{}).with("/api/v1/nodes", nodes(node("gpu-1", api.Condition{Type: "MemoryPressure", Status: "True", Message: "310 of 16011 MiB are available"}))),
			[]string{"warning: nodes: gpu-1: it is short of memory: 310 of 16011 MiB"},
		},
		"a device that is not well": {
			(&fakeCluster{}).with("/api/v1/nodes", nodes(node("gpu-1", api.Condition{Type: "GPUHealthy", Status: "False", Message: "GPU-1 is tainted (XID 79); "}))),
			[]string{"warning: nodes: gpu-1: devices are not well: GPU-1 is tainted (XID 79)"},
		},
		"a node that offers more than its cgroup": {
			(&fakeCluster{}).with("/api/v1/nodes", nodes(node("gpu-1", api.Condition{Type: "CgroupLimited", Status: "True", Message: "8Gi of 126Gi"}))),
			[]string{"warning: nodes: gpu-1: it offers more than its agent's cgroup may use: 8Gi of 126Gi", "reserved.memory"},
		},
		"two agents with one id": {
			(&fakeCluster{}).with("/api/v1/nodes", nodes(node("gpu-1", api.Condition{Type: "DuplicateAgent", Status: "True", Message: "two agents have this node's id"}))),
			[]string{"error: names: gpu-1: two agents have this node's id", "muster doctor --config"},
		},
		"an address that another node has taken": {
			(&fakeCluster{}).with("/api/v1/nodes", nodes(node("gpu-1", api.Condition{Type: "DuplicateAddress", Status: "True", Reason: "AddressTaken", Message: "gpu-2 registered with it"}))),
			[]string{"error: names: gpu-1: gpu-2 registered with it", "muster delete node gpu-1"},
		},
		"processes that no grant has": {
			(&fakeCluster{}).with("/api/v1/nodes", nodes(node("gpu-1", api.Condition{Type: "OrphanProcesses", Status: "True", Message: "pid 7"}))), []string{"warning: nodes: gpu-1: processes that no grant has use its devices: pid 7"},
		},
		"a kubelet that the device plugin does not reach": {
			(&fakeCluster{}).with("/api/v1/nodes", nodes(node("gpu-1", api.Condition{Type: "KubeletPool", Status: "False", Reason: "KubeletUnreachable", Message: "no socket"}))),
			[]string{"warning: nodes: gpu-1: its device plugin does not reach the kubelet: no socket", "systemctl status kubelet"},
		},
		"a node in quarantine": {
			(&fakeCluster{}).with("/api/v1/nodes", nodes(broken("gpu-1", "Quarantined", "Quarantined", "the store went back"))), []string{"error: nodes: gpu-1: Quarantined", "muster reconcile gpu-1"},
		},
		"two nodes at one address": {
			(&fakeCluster{}).with("/api/v1/nodes", nodes(node("gpu-1"), node("gpu-2"))), []string{"warning: names: gpu-1, gpu-2: 2 nodes have the address 10.0.0.5:8472", "set nodeID"},
		},
		"a node that registers again and again": {
			(&fakeCluster{}).with("/api/v1/nodes", nodes(registered("gpu-1", "v1", now, time.Minute))), []string{"error: names: gpu-1: it has registered 5 times since ", "two agents have this name"},
		},
		"a node that was restarted now and then": {(&fakeCluster{}).with("/api/v1/nodes", nodes(registered("gpu-1", "v1", now, time.Hour))), nil},
		"an agent of another version": {
			(&fakeCluster{}).with("/api/v1/nodes", nodes(registered("gpu-1", "v0", now, time.Hour))), []string{"warning: versions: gpu-1: its agent is v0, the coordinators are v1"},
		},
		"a misspelt resource in a quota": {
			(&fakeCluster{}).with("/api/v1/resourcequotas", quota("cpu", "pods", "nvidia.com/gpus")),
			[]string{`warning: quotas: resourcequota ml/q: it limits "nvidia.com/gpus", which none of 1 nodes hands out; is "nvidia.com/gpu" meant?`, "muster apply -f q.yaml"},
		},
		"a resource that is like no other": {(&fakeCluster{}).with("/api/v1/resourcequotas", quota("requests.storage")), []string{`warning: quotas: resourcequota ml/q: it limits "requests.storage", which none of 1 nodes hands out => `}},
		"a misspelt resource in a tree": {
			(&fakeCluster{}).with("/api/v1/quotatrees", api.QuotaTreeList{Items: []api.QuotaTree{{Metadata: api.ObjectMeta{Name: "org"}, Spec: json.RawMessage(`{"resourceNames":["cpu","memroy"]}`)}}}),
			[]string{`warning: quotas: quotatree org: it counts "memroy", which none of 1 nodes hands out; is "memory" meant?`},
		},
		"an authority that ends": {
			(&fakeCluster{}).with("/api/v1/authorities", api.AuthorityList{Items: []api.Authority{{Metadata: api.ObjectMeta{Name: "a1"}, Status: api.AuthorityStatus{Expires: now.Add(240 * time.Hour).UTC().Format(time.RFC3339), Nodes: 7}}}}),
			[]string{"warning: certificates: authority a1: its certificate ends at ", "7 nodes have a certificate by it", "muster ca rotate"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(test.cluster)
			defer server.Close()
			r := Look(t.Context(), options(server.URL)).Judge(now, "test")
			if test.want == nil && len(r.Findings) > 0 || test.want != nil && r.Faults() != 1 {
				t.Errorf("found:\n%s", found(r))
			}
			for _, want := range test.want {
				if !strings.Contains(found(r), want) {
					t.Errorf("%q is not in:\n%s", want, found(r))
				}
			}
		})
	}
}

// refusedAddress is an address at which nothing listens.
func refusedAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestAddressesThatGiveNoAnswerAreExplained(t *testing.T) {
	plain := httptest.NewServer(&fakeCluster{})
	defer plain.Close()
	secure := httptest.NewTLSServer(&fakeCluster{})
	defer secure.Close()
	secure.Config.ErrorLog = nil
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	trusted := secure.Client().Transport.(*http.Transport).TLSClientConfig
	for name, test := range map[string]struct {
		endpoint string
		trust    *tls.Config
		patience time.Duration
		want     string
	}{
		"a closed port":                {endpoint: "http://" + refusedAddress(t), want: "error: reachability: ENDPOINT: the port is closed: connection refused"},
		"https to a port without TLS":  {endpoint: strings.Replace(plain.URL, "http", "https", 1), want: "error: reachability: ENDPOINT: the coordinator speaks HTTP without TLS, and the address says https:// => muster config set-context --current --addr " + plain.URL},
		"http to a port with TLS":      {endpoint: strings.Replace(secure.URL, "https", "http", 1), want: "error: reachability: ENDPOINT: the coordinator speaks HTTPS, and the address says http:// => muster config set-context --current --addr " + secure.URL},
		"an authority without trust":   {endpoint: secure.URL, want: "error: certificates: ENDPOINT: the coordinator's certificate is signed by an authority that this host does not trust"},
		"another name":                 {endpoint: strings.Replace(secure.URL, "127.0.0.1", "localhost", 1), trust: trusted, want: "error: certificates: ENDPOINT: the coordinator's certificate is for another name: "},
		"a name that does not resolve": {endpoint: "http://coordinator.invalid:8470", want: `error: reachability: ENDPOINT: the name "coordinator.invalid" cannot be resolved`},
		"a host that says nothing":     {endpoint: "http://" + silent.Addr().String(), patience: 200 * time.Millisecond, want: "error: reachability: ENDPOINT: no answer within 200ms"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(test.endpoint)
			o.Trust = test.trust
			if test.patience > 0 {
				o.Patience = test.patience
			}
			r := Look(t.Context(), o).Judge(time.Now(), "test")
			if want := strings.ReplaceAll(test.want, "ENDPOINT", test.endpoint); !strings.Contains(found(r), want) || r.Faults() != 1 {
				t.Errorf("want %q, found:\n%s", want, found(r))
			}
			if len(r.Skipped) < 5 {
				t.Errorf("checks that cannot be made are %v", r.Skipped)
			}
		})
	}
}

// TestTheTokenGoesToTheNamedAddressesAlone: a coordinator that another one names
// is asked for its version without the token.
func TestTheTokenGoesToTheNamedAddressesAlone(t *testing.T) {
	asked := make(chan string, 16)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Authorization")
		(&fakeCluster{}).ServeHTTP(w, r)
	}))
	defer other.Close()
	first := httptest.NewServer((&fakeCluster{}).with("/api/v1/coordinators", api.CoordinatorList{Items: []api.Coordinator{
		{ID: "c1", Role: api.LeaderRole}, {ID: "c2", Role: api.FollowerRole, REST: strings.TrimPrefix(other.URL, "http://")},
	}}))
	defer first.Close()
	f := Look(t.Context(), options(first.URL))
	close(asked)
	if len(f.probes) != 2 || f.probes[1].broken != nil {
		t.Errorf("probes are %+v", f.probes)
	}
	for header := range asked {
		if header != "" {
			t.Errorf("the other coordinator was sent %q", header)
		}
	}
}

func TestTheRingIsComparedWithTheNodes(t *testing.T) {
	member := func(name, role, status string) client.Member {
		return client.Member{Name: name, Addr: net.IPv4(10, 0, 0, 1), Port: 7946, Tags: map[string]string{"role": role}, Status: status}
	}
	f := Facts{
		blind: map[string]string{}, nodes: []api.Node{node("a"), node("b"), node("c")},
		members: []client.Member{member("a", "agent", "alive"), member("b", "agent", "failed"), member("stray", "agent", "alive"), member("coordinator_c1", "coordinator", "alive")},
	}
	got := found(f.Judge(time.Now(), "test"))
	for _, want := range []string{
		"warning: ring: b: the member at 10.0.0.1:7946 is failed", "warning: ring: stray: the member at 10.0.0.1:7946 is an agent and no registered node",
		"warning: ring: c: the node is no member of the ring of 4 members",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in:\n%s", want, got)
		}
	}
	if strings.Contains(got, "ring: a:") || strings.Contains(got, "coordinator_c1") {
		t.Errorf("too much is found:\n%s", got)
	}
}

// file writes a file with a mode and returns its path.
func file(t *testing.T, dir, name, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEachFaultOfAHostIsFound(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, here := node("gpu-9"), node("gpu-8")
	elsewhere.Status.Addresses[0].Address = "some-other-host"
	here.Status.Addresses[0].Address = host
	tests := map[string]struct {
		config func(dir string) string
		mode   os.FileMode
		want   []string // nil: nothing is wrong
	}{
		"a host that is well":          {config: func(dir string) string { return "nodeID: gpu-8\nlisten: 127.0.0.1:0\n" }},
		"a file that is no YAML":       {config: func(string) string { return "a: [\n" }, want: []string{"error: file: ", "it is no YAML"}},
		"a file that others may write": {config: func(string) string { return "nodeID: gpu-8\n" }, mode: 0o666, want: []string{"error: file: ", "its mode is 0666", "chmod go-w"}},
		"a token that others may read": {
			config: func(dir string) string { return "tokenFile: " + file(t, dir, "token", "abc", 0o644) }, want: []string{"error: tokens: tokenFile: the mode of ", "is 0644", "chmod 0600"},
		},
		"a token file that is not there": {config: func(dir string) string { return "tokenFile: " + dir + "/none" }, want: []string{"error: tokens: tokenFile: stat "}},
		"an empty token file":            {config: func(dir string) string { return "tokenFile: " + file(t, dir, "token", "\n", 0o600) }, want: []string{"error: tokens: tokenFile: ", "is empty"}},
		"the same token twice": {
			config: func(dir string) string {
				return "tokenFile: " + file(t, dir, "a", "abc\n", 0o600) + "\nadminTokenFile: " + file(t, dir, "b", "abc", 0o600)
			}, want: []string{"error: tokens: adminTokenFile: adminTokenFile has the same token as tokenFile"},
		},
		"a port that another program has": {
			config: func(string) string { return "listen: " + busy.Addr().String() + "\nmetricsListen: 127.0.0.1:0" }, want: []string{"error: ports: listen: " + busy.Addr().String() + " is in use by another program", "ss -ltnp"},
		},
		"a port that is named twice": {
			config: func(string) string { return "listen: 127.0.0.1:1\nmetricsListen: 127.0.0.1:1" }, want: []string{"error: ports: metricsListen: metricsListen is 127.0.0.1:1, as listen is"},
		},
		"an address of another host":         {config: func(string) string { return "listen: 192.0.2.1:0" }, want: []string{"error: ports: listen: 192.0.2.1:0 cannot be bound"}},
		"a program that runs":                {config: func(string) string { return "listen: " + busy.Addr().String() }},
		"a data folder that is a file":       {config: func(dir string) string { return "dataDir: " + file(t, dir, "data", "", 0o600) }, want: []string{"error: data folder: ", "it is no folder"}},
		"a data folder for everybody":        {config: func(dir string) string { _ = os.Chmod(dir, 0o777); return "dataDir: " + dir }, want: []string{"error: data folder: ", "its mode is 0777"}},
		"a coordinator that does not answer": {config: func(string) string { return "coordinators: ['" + refusedAddress(t) + "']" }, want: []string{"error: peers: coordinators[0]: ", "connection refused", "nc -vz 127.0.0.1 "}},
		"an etcd that does not answer":       {config: func(string) string { return "etcdEndpoints: ['http://" + refusedAddress(t) + "']" }, want: []string{"error: peers: etcdEndpoints[0]: ", "connection refused"}},
		"a ring that does not answer":        {config: func(string) string { return "gossip: {join: ['" + refusedAddress(t) + "']}" }, want: []string{"error: peers: gossip.join[0]: "}},
		"a node id that another host has":    {config: func(string) string { return "nodeID: gpu-9" }, want: []string{"error: name: gpu-9: a node of this name is registered by the host some-other-host, and this host is " + host}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			mode := test.mode
			if mode == 0 {
				mode = 0o600
			}
			path := file(t, dir, "config.yaml", test.config(dir), mode)
			r, err := LookAtHost(t.Context(), path, []api.Node{elsewhere, here}, Options{Patience: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if (r.Faults() == 0) != (test.want == nil) || r.Faults() > 1 {
				t.Errorf("found:\n%s", found(r))
			}
			for _, want := range test.want {
				if !strings.Contains(found(r), want) {
					t.Errorf("%q is not in:\n%s", want, found(r))
				}
			}
		})
	}
	if _, err := LookAtHost(context.Background(), "/nowhere/config.yaml", nil, Options{}); err == nil {
		t.Error("a file that is not there is looked at")
	}
}
