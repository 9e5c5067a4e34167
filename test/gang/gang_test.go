package gang_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/usage"
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rpc"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/etcd"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/numa/sysfs"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/rpcauth"
)

const cluster = "gang"

var sizes = []int{8, 64, 512}

// BenchmarkGang submits a gang of as many members as there are agents, each of
// 8 GPUs, so that every agent has one, and waits until it is acknowledged as
// running. Store and agents' journals are on disk with fsync, connections are
// TCP on loopback, all in one process. The end of the gang is not measured.
func BenchmarkGang(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("members=%d", size), func(b *testing.B) {
			c := start(b, size)
			var took []time.Duration
			b.ResetTimer()
			for i := 0; i < b.N; i++ {
				took = append(took, c.run(b, i, size))
			}
			report(b, took)
		})
	}
}

// BenchmarkFloor is what no gang can be faster than: a call to every agent at
// once until the last has answered, and then one Txn of as many operations as
// the commit of the gang has, each put of as many bytes.
func BenchmarkFloor(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("members=%d", size), func(b *testing.B) {
			peers := echoes(b, size)
			s := embed(b)
			var took []time.Duration
			b.ResetTimer()
			for i := 0; i < b.N; i++ {
				began := time.Now()
				peers.callAll(b)
				commit(b, s, i, size)
				took = append(took, time.Since(began))
			}
			report(b, took)
		})
	}
}

func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// running is a coordinator that leads, and its agents.
type running struct{ *coordinator.Coordinator }

func embed(b *testing.B) *etcd.Store {
	s, err := etcd.Embed(b.Context(), etcd.EmbedConfig{Dir: filepath.Join(b.TempDir(), "etcd")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

func start(b *testing.B, agents int) *running {
	token, err := rpcauth.NewToken("0123456789abcdef0123456789abcdef")
	if err != nil {
		b.Fatal(err)
	}
	s := embed(b)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	c, err := coordinator.New(coordinator.Config{
		ID: "bench", Cluster: cluster, Logger: quiet, Address: record.LeaderAddress{ID: "bench", GRPC: listener.Addr().String()},
		DialAgents: []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(rpcauth.Credentials(token))},
	}, s, nil)
	if err != nil {
		b.Fatal(err)
	}
	server := grpc.NewServer(append(rpcauth.ServerOptions(token),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}))...)
	musterv1.RegisterCoordinatorServer(server, &rpc.Server{Cluster: cluster, Store: s, Logger: quiet, Registered: c.NodeRegistered, Evictor: c.EvictFor})
	schedulerv1.RegisterNodeAgentServer(server, &rpc.Heartbeats{CoordinatorID: "bench", Store: s, Logger: quiet})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { server.Serve(listener) }) // it ends with Stop
	wg.Go(func() {
		if err := c.Run(ctx); err != nil {
			b.Error(err)
		}
	})
	b.Cleanup(func() { cancel(); server.Stop(); wg.Wait() })
	startAgents(ctx, b, &wg, c, agents, token, listener.Addr().String())
	r := &running{c}
	r.awaitReady(b, agents)
	return r
}

func startAgents(ctx context.Context, b *testing.B, wg *sync.WaitGroup, c *coordinator.Coordinator, n int, token rpcauth.Token, coordinator string) {
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		b.Fatal(err)
	}
	topology := profile.Topology()
	dir := b.TempDir()
	var like *fit.Host
	for i := range n {
		node := fmt.Sprintf("node-%03d", i)
		a, err := agent.New(agent.Config{
			Cluster: cluster, Node: resource.NodeID(node), DataDir: filepath.Join(dir, node), Listen: "127.0.0.1:0",
			Coordinators: []string{coordinator}, Headroom: 64 << 10,
		}, agent.Deps{
			Discovered: agent.Discovered{Host: sysfs.Host{Hostname: node}, BootID: "boot", Topology: topology, Inventory: profile.Inventory(node)},
			HostLike:   like, Token: token, Usage: func(context.Context) (usage.Usage, error) { return usage.Usage{}, nil },
		})
		if err != nil {
			b.Fatal(err)
		}
		like = a.Host()
		wg.Go(func() {
			if err := a.Run(ctx); err != nil {
				b.Error(err)
			}
		})
		c.AgentSeen(resource.NodeID(node), a.Address())
	}
}

func (r *running) awaitReady(b *testing.B, want int) {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		ready := 0
		if nodes, err := r.ListNodes(b.Context()); err == nil {
			for _, n := range nodes.Items {
				if n.Status.Phase == "Ready" {
					ready++
				}
			}
		}
		if ready == want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.Fatalf("not all of %d agents are ready within a minute", want)
}

// run times one gang, and ends it with the timer stopped.
func (r *running) run(b *testing.B, i, members int) time.Duration {
	b.StopTimer()
	document, err := json.Marshal(map[string]any{
		"kind": "Job", "metadata": map[string]any{"name": fmt.Sprintf("g-%d", i)},
		"spec": map[string]any{"parallelism": members, "template": map[string]any{"spec": map[string]any{
			"resources":  map[string]any{"requests": map[string]string{string(resource.GPU): "8", "cpu": "16", "memory": "64Gi"}},
			"scheduling": map[string]any{"gangScheduling": map[string]any{"minMembers": members}},
		}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	doc, status := api.DecodeJob(document)
	if status != nil {
		b.Fatal(status)
	}
	b.StartTimer()
	began := time.Now()
	j, err := r.CreateJob(b.Context(), service.Create{Namespace: "default", Document: document, Wait: 20 * time.Second}, doc)
	took := time.Since(began)
	b.StopTimer()
	if err != nil || j.Status.Phase != api.Running {
		b.Fatalf("gang %d: %v, %+v", i, err, j)
	}
	r.end(b, j.Metadata.Name)
	b.StartTimer()
	return took
}

// end deletes a job and waits until it is gone.
func (r *running) end(b *testing.B, name string) {
	if _, err := r.DeleteJob(b.Context(), "default", name, api.DeleteOptions{}); err != nil {
		b.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		jobs, err := r.ListJobs(b.Context(), "default", service.Page[api.Job]{})
		if err != nil {
			b.Fatal(err)
		}
		if len(jobs.Items) == 0 {
			return
		}
	}
	b.Fatalf("job %s is not gone after 20 s", name)
}

// echo answers the smallest call there is.
type echo struct {
	healthv1.UnimplementedHealthServer
}

func (echo) Check(context.Context, *healthv1.HealthCheckRequest) (*healthv1.HealthCheckResponse, error) {
	return &healthv1.HealthCheckResponse{Status: healthv1.HealthCheckResponse_SERVING}, nil
}

type peers []healthv1.HealthClient

func echoes(b *testing.B, n int) peers {
	var list peers
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		server := grpc.NewServer()
		healthv1.RegisterHealthServer(server, echo{})
		go server.Serve(listener) // it ends with Stop
		b.Cleanup(server.Stop)
		conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { conn.Close() })
		list = append(list, healthv1.NewHealthClient(conn))
	}
	list.callAll(b) // connects
	return list
}

func (p peers) callAll(b *testing.B) {
	var wg sync.WaitGroup
	for _, peer := range p {
		wg.Go(func() {
			if _, err := peer.Check(b.Context(), &healthv1.HealthCheckRequest{}); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
}

// valueSize is about that of one member in a record, in bytes.
const valueSize = 512

// commit writes what a gang's commit writes: a compare and an index entry per
// member, and one record of all of them.
func commit(b *testing.B, s store.Store, i, members int) {
	var t record.Txn
	for m := range members {
		key := fmt.Sprintf("/registry/nodes/node-%03d/tx/%d", m, i)
		t.If = append(t.If, record.Absent(key))
		t.Then = append(t.Then, record.Put(key, []byte(`{"schema":1,"members":[0]}`)))
	}
	t.Then = append(t.Then, record.Put(fmt.Sprintf("/registry/tx/%d", i), make([]byte, valueSize*members)))
	result, err := s.Txn(b.Context(), t)
	if err != nil || !result.Succeeded {
		b.Fatalf("commit %d: %v, %+v", i, err, result)
	}
}
