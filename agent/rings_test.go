package agent_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/serf/client"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/deviceplugin"
	"github.com/musterd/muster/agent/deviceplugin/kubelettest"
	"github.com/musterd/muster/agent/rpc"
	"github.com/musterd/muster/gossip"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/rpcauth"
)

const loopback = "127.0.0.1:0"

// serveStore serves the store on a real loopback port.
func serveStore(t *testing.T, s *store) string {
	t.Helper()
	listener, err := net.Listen("tcp", loopback)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(rpcauth.ServerOptions(token(t))...)
	musterv1.RegisterCoordinatorServer(server, s)
	schedulerv1.RegisterNodeAgentServer(server, s)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

func TestAnAgentFindsCoordinatorsThroughTheRingAndAnswersQueries(t *testing.T) {
	r := newRig(t)
	rings, err := gossip.Start(gossip.Config{
		Cluster: cluster, SerfBind: loopback, CapacityBind: loopback,
		Tags: gossip.Tags{Role: gossip.RoleCoordinator, ID: "c1", Addr: serveStore(t, r.store)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rings.Abandon() })
	const serfToken = "serf-token"
	r.tune = func(c *agent.Config, d *agent.Deps) {
		c.Coordinators, d.Dialer, d.Listener, d.Address, c.Listen = nil, nil, nil, "", loopback
		c.Labels = map[string]string{"zone": "z1", "rack": "r1"}
		c.Gossip = &agent.GossipConfig{
			SerfBind: loopback, CapacityBind: loopback, Join: []string{rings.Serf.Addr()},
			RPC: gossip.RPC{Addr: loopback, Token: serfToken},
		}
	}
	r.start()
	var registered int
	eventually(t, "the agent registers with what the ring told", func() bool {
		r.store.set(func(s *store) { registered = s.registered })
		return registered > 0
	})
	eventually(t, "the ring knows the agent", func() bool {
		for _, m := range rings.Serf.Members() {
			if m.Tags.Role == gossip.RoleAgent && m.Tags.ID == node && m.Tags.Zone == "z1" && m.Tags.Rack == "r1" &&
				m.Tags.Addr == r.agent.Address() && strings.Contains(m.Tags.Model, "A100") {
				return true
			}
		}
		return false
	})
	eventually(t, "its digest is there, all GPUs free", func() bool {
		for _, d := range rings.Capacity.Digests() {
			if d.NodeID == node && d.Revision > 0 && d.FreeGPUs == 0xff && d.Flags == 0 {
				return true
			}
		}
		return false
	})
	serf, err := client.ClientFromConfig(&client.Config{Addr: r.agent.Rings().Serf.RPCAddr(), AuthKey: serfToken, Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	defer serf.Close()
	for _, query := range []string{"capacity", "devices", "health", "allocations", "version"} {
		eventually(t, "an answer to the query "+query, func() bool {
			payload := ask(t, serf, query)
			var body map[string][]any
			if err := json.Unmarshal(payload, &body); err != nil || len(payload) > 1024 {
				t.Fatalf("%s: answer %q, %v", query, payload, err)
			}
			if late := body["error"]; late != nil { // a busy agent may miss the query's own deadline
				t.Logf("%s: %v", query, late)
				return false
			}
			if rows, ok := body[query]; !ok || len(rows) == 0 && query != "allocations" {
				t.Fatalf("%s: answer %q", query, payload)
			}
			return true
		})
	}
}

// The query allocations names the containers of the kubelet's devices, for the operators of
// the host.
func TestTheQueryAllocationsNamesTheKubeletsContainers(t *testing.T) {
	r, dir := newRig(t), kubelettest.Dir(t)
	pool := r.withKubelet(dir, 2)
	const serfToken = "serf-token"
	tune := r.tune
	r.tune = func(c *agent.Config, d *agent.Deps) {
		tune(c, d)
		c.Gossip = &agent.GossipConfig{SerfBind: loopback, CapacityBind: loopback, RPC: gossip.RPC{Addr: loopback, Token: serfToken}}
	}
	k := kubelettest.Start(t, dir, nil)
	r.start()
	r.lead(1)
	k.Await(deviceplugin.DefaultResource, pool...)
	pod, err := k.Run("p", deviceplugin.DefaultResource, 1)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "it has joined the rings", func() bool { return r.agent.Rings() != nil })
	serf, err := client.ClientFromConfig(&client.Config{Addr: r.agent.Rings().Serf.RPCAddr(), AuthKey: serfToken, Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	defer serf.Close()
	var body struct {
		Allocations []struct {
			State, Device string
			Containers    []string
		}
	}
	eventually(t, "the answer names the container", func() bool {
		payload := ask(t, serf, "allocations")
		body.Allocations = nil
		if err := json.Unmarshal(payload, &body); err != nil {
			t.Fatalf("answer %q: %v", payload, err)
		}
		for _, a := range body.Allocations {
			if a.State == "KUBELET" && a.Device == pod.Units[0] && slices.Equal(a.Containers, []string{"default/p/main"}) {
				return true
			}
		}
		return false
	})
	if len(body.Allocations) != 2 {
		t.Errorf("allocations %+v, want both devices of the pool", body.Allocations)
	}
}

// Devices count more than the names of their containers, which may be long.
func TestTheQueryAllocationsLeavesOutContainersForDevices(t *testing.T) {
	r, dir := newRig(t), kubelettest.Dir(t)
	pool := r.withKubelet(dir, 6)
	const serfToken = "serf-token"
	tune := r.tune
	r.tune = func(c *agent.Config, d *agent.Deps) {
		tune(c, d)
		c.Gossip = &agent.GossipConfig{SerfBind: loopback, CapacityBind: loopback, RPC: gossip.RPC{Addr: loopback, Token: serfToken}}
	}
	k := kubelettest.Start(t, dir, nil)
	r.start()
	r.lead(1)
	k.Await(deviceplugin.DefaultResource, pool...)
	for i := range pool {
		if _, err := k.Run(fmt.Sprint(strings.Repeat("p", 200), i), deviceplugin.DefaultResource, 1); err != nil {
			t.Fatal(err)
		}
	}
	k.AwaitLists(2)
	eventually(t, "it has joined the rings", func() bool { return r.agent.Rings() != nil })
	serf, err := client.ClientFromConfig(&client.Config{Addr: r.agent.Rings().Serf.RPCAddr(), AuthKey: serfToken, Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	defer serf.Close()
	eventually(t, "the answer has all devices", func() bool {
		var body struct {
			Allocations []struct{ Device string }
		}
		payload := ask(t, serf, "allocations")
		if err := json.Unmarshal(payload, &body); err != nil || len(payload) > 1024 {
			t.Fatalf("answer %q: %v", payload, err)
		}
		return len(body.Allocations) == len(pool)
	})
}

// ask returns the agent's answer to a query.
func ask(t *testing.T, serf *client.RPCClient, query string) []byte {
	t.Helper()
	answers := make(chan client.NodeResponse, 4)
	if err := serf.Query(&client.QueryParam{Name: query, Timeout: patient, FilterNodes: []string{node}, RespCh: answers}); err != nil {
		t.Fatal(err)
	}
	answer, ok := <-answers // closed when the query ends
	if !ok {
		t.Fatalf("%s: no answer", query)
	}
	return answer.Payload
}

func TestMetricsFollowTheLedger(t *testing.T) {
	r := newRig(t)
	r.tune = func(c *agent.Config, d *agent.Deps) {
		c.MetricsListen, d.Metrics = loopback, prometheus.NewRegistry()
	}
	r.start()
	l := r.lead(1)
	r.grant(l, "a", 3)
	mustBe(t, l.reserve("b", 6, time.Minute), musterv1.Reply_NO)
	text := fetch(t, "http://"+r.agent.MetricsAddress()+"/metrics")
	for _, want := range []string{
		`muster_agent_allocatable{node="n1",resource="nvidia.com/gpu",unit="device"} 8`,
		`muster_agent_free{node="n1",resource="nvidia.com/gpu",unit="device"} 5`,
		`muster_agent_gpu_healthy{device="7",model="NVIDIA A100-SXM4-80GB",node="n1",uuid="` + r.agent.Host().Inventory().Devices[7].UUID + `"} 1`,
		`muster_agent_gpu_free{device="7",model="NVIDIA A100-SXM4-80GB",node="n1",uuid="` + r.agent.Host().Inventory().Devices[7].UUID + `"} 1`,
		`muster_agent_grants{node="n1",state="HELD"} 1`,
		`muster_agent_registered{node="n1"} 1`,
		`muster_agent_decisions_total{command="reserve",node="n1",outcome="Insufficient"} 1`,
		`muster_agent_decisions_total{command="commit",node="n1",outcome="accepted"} 1`,
		`muster_agent_decide_seconds_count{node="n1"}`,
		`muster_agent_alarms_total{node="n1"} 0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the metrics", want)
		}
	}
	if strings.Contains(text, "u-a") {
		t.Error("metrics name allocations")
	}
	for _, probe := range []string{"/livez", "/healthz"} {
		if got := fetch(t, "http://"+r.agent.MetricsAddress()+probe); got != "ok\n" {
			t.Errorf("%s says %q", probe, got)
		}
	}
}

// An agent that no coordinator has let in lives and is not healthy, and says why.
func TestAnAgentWithoutACoordinatorIsNotHealthy(t *testing.T) {
	r := newRig(t)
	r.tune = func(c *agent.Config, d *agent.Deps) {
		c.MetricsListen, d.Metrics, c.Coordinators = loopback, prometheus.NewRegistry(), nil
	}
	r.start()
	address := "http://" + r.agent.MetricsAddress()
	eventually(t, "it looks for a coordinator", func() bool {
		return strings.HasPrefix(fetch(t, address+"/healthz"), "no coordinator is known: ")
	})
	if got := fetch(t, address+"/livez"); got != "ok\n" {
		t.Errorf("livez says %q", got)
	}
	response, err := http.Get(address + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("healthz answers %s, want 503", response.Status)
	}
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var b bytes.Buffer
	if _, err := io.Copy(&b, response.Body); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// BenchmarkReserve is one round trip over a real loopback connection: Reserve
// to Yes, and Abort to None.
func BenchmarkReserve(b *testing.B) {
	r := newRig(b)
	r.tune = func(c *agent.Config, d *agent.Deps) { d.Listener, d.Address, c.Listen = nil, "", loopback }
	r.start()
	conn, err := rpc.Dial(r.agent.Address(), token(b), nil)
	if err != nil {
		b.Fatal(err)
	}
	eventually(b, "registered", func() bool {
		n := 0
		r.store.set(func(s *store) { n = s.registered })
		return n > 0
	})
	stream, err := musterv1.NewAgentClient(conn).Session(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	trip := func(m *musterv1.LeaderMessage) *musterv1.AgentMessage {
		if err := stream.Send(m); err != nil {
			b.Fatal(err)
		}
		answer, err := stream.Recv()
		if err != nil {
			b.Fatal(err)
		}
		return answer
	}
	trip(&musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Hello{Hello: r.store.hello(1)}})
	reserve := &musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Reserve{Reserve: &musterv1.Reserve{
		Tx: "a", Epoch: 1, TtlMillis: 60000, Members: []*musterv1.MemberRequest{want(1)},
	}}}
	abort := &musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Abort{Abort: &musterv1.Abort{Tx: "a", Epoch: 1}}}
	for trip(reserve).GetReply().GetState() != musterv1.Reply_RESERVED { // the registration may be a moment away
	}
	trip(abort)
	var asked time.Duration
	for b.Loop() {
		began := time.Now()
		if yes := trip(reserve).GetReply(); yes.GetState() != musterv1.Reply_RESERVED {
			b.Fatal(yes)
		}
		asked += time.Since(began)
		trip(abort)
	}
	b.ReportMetric(float64(asked.Nanoseconds())/float64(b.N), "ns/yes")
}
