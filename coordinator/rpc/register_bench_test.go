package rpc_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/musterd/muster/coordinator/rpc"
	"github.com/musterd/muster/coordinator/store/etcd"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/grant"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/test/etcdcluster"
	"github.com/musterd/muster/wire"
)

// BenchmarkRegisteringAgain is the load of one of 1,000 agents on a coordinator
// and its etcd, of one member, after each election: a registration that changes
// nothing, and the read after it.
func BenchmarkRegisteringAgain(b *testing.B) {
	const nodes = 1000
	e := etcdcluster.Start(b, etcdcluster.Options{Members: 1})
	s, err := etcd.Connect(b.Context(), etcd.Config{Endpoints: e.Endpoints()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		b.Fatal(err)
	}
	server := &rpc.Server{Cluster: "c", Store: s, Logger: quiet}
	register := func(node int) {
		id := fmt.Sprint("n", node)
		if _, err := server.Register(b.Context(), &musterv1.RegisterRequest{
			Cluster: "c", NodeId: id, Incarnation: wire.ToIncarnation(first), AgentAddr: "10.0.0.1:7077",
			Host: wire.ToHost(grant.Host{Hostname: id, Topology: profile.Topology(), Inventory: profile.Inventory(id)}),
		}); err != nil {
			b.Error(err)
		}
		if _, err := server.ReadNode(b.Context(), &musterv1.ReadNodeRequest{NodeId: id}); err != nil {
			b.Error(err)
		}
	}
	for node := range nodes {
		register(node)
	}
	var next atomic.Int64
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			register(int(next.Add(1) % nodes))
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "registrations/s")
}
