package evil

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/musterd/muster/coordinator/enroll"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/gossip"
	"github.com/musterd/muster/pki/folder"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/rpcauth"
)

// coordinatorModes are a party that pretends to lead honest agents.
var coordinatorModes = map[string]func(context.Context, *run) error{
	// A node's certificate (level A1).
	"node-leads": func(ctx context.Context, r *run) error {
		identity, err := r.enroll(ctx)
		if err != nil {
			return err
		}
		return r.leadAll(ctx, identity.TLS())
	},
	// A coordinator of another cluster, with its own authority (level A0).
	"foreign-coordinator-leads": func(ctx context.Context, r *run) error {
		s := mem.Open(mem.Options{})
		defer s.Close()
		e, err := enroll.Open(ctx, enroll.Config{Cluster: r.Cluster, ID: "coordinator-1", Store: s}, func(keys [][]byte) (enroll.Keyring, error) { return gossip.NewKeyring(keys) })
		if err != nil {
			return err
		}
		return r.leadAll(ctx, e.TLS())
	},
	// A coordinator of this cluster that was deposed and does not know it: its
	// certificate is good, its epoch is over. The harness makes the certificate.
	"deposed-leader": func(ctx context.Context, r *run) error {
		f, err := folder.Open(r.Certificate)
		if err != nil {
			return err
		}
		party, err := f.Load()
		if err != nil {
			return err
		}
		member, err := rpcauth.NewTLS(rpcauth.Material{Chain: party.Chain, Key: party.Key, Roots: party.Roots})
		if err != nil {
			return err
		}
		return r.leadAll(ctx, member)
	},
	// A node calls what coordinators and operators call on another node.
	"node-evicts": func(ctx context.Context, r *run) error {
		identity, err := r.enroll(ctx)
		if err != nil {
			return err
		}
		r.ready()
		for _, a := range r.Agents {
			conn, err := dialAgent(a, identity.TLS())
			if err != nil {
				return err
			}
			call, cancel := context.WithTimeout(ctx, 5*time.Second)
			_, err = schedulerv1.NewNodeAgentClient(conn).EvictAllocation(call, &schedulerv1.EvictRequest{AllocationId: "default/bait"})
			r.answered("EvictAllocation", err)
			_, err = schedulerv1.NewNodeAgentClient(conn).GetResourceSnapshot(call, &schedulerv1.SnapshotRequest{})
			r.answered("GetResourceSnapshot", err)
			cancel()
			conn.Close()
		}
		return nil
	},
	// A coordinator of this cluster that floods honest agents with large commands.
	"coordinator-floods": func(ctx context.Context, r *run) error {
		f, err := folder.Open(r.Certificate)
		if err != nil {
			return err
		}
		party, err := f.Load()
		if err != nil {
			return err
		}
		member, err := rpcauth.NewTLS(rpcauth.Material{Chain: party.Chain, Key: party.Key, Roots: party.Roots})
		if err != nil {
			return err
		}
		r.ready()
		ctx, cancel := context.WithTimeout(ctx, r.For)
		defer cancel()
		body := junk(7 << 20)
		var sent atomic.Int64
		parallel(64, func(i int) {
			conn, err := dialAgent(r.Agents[i%len(r.Agents)], member)
			if err != nil {
				return
			}
			defer conn.Close()
			for sent.Add(1) <= int64(200*r.Size) && ctx.Err() == nil {
				stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/muster.v1.Agent/Session", grpc.ForceCodec(raw{}))
				if err == nil {
					_ = stream.SendMsg(&body) // the answer says why not
					var answer []byte
					err = stream.RecvMsg(&answer)
				}
				if ctx.Err() == nil {
					r.answered("Session", err)
				}
			}
		})
		return nil
	},
}

func dialAgent(a Target, member rpcauth.Member) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+a.GRPC, append(member.DialOptions(rpcauth.NamedNode()), grpc.WithAuthority(a.Node),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(maxMessage)))...)
}

// leadAll tries to lead each honest agent.
func (r *run) leadAll(ctx context.Context, member rpcauth.Member) error {
	r.ready()
	for range 3 {
		for _, a := range r.Agents {
			r.lead(ctx, a, member)
		}
	}
	return nil
}

// lead opens a session in an old epoch and sends what would hand out and end
// work. Each answer is counted.
func (r *run) lead(ctx context.Context, a Target, member rpcauth.Member) {
	conn, err := dialAgent(a, member)
	if err != nil {
		r.note("%v", err)
		return
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	stream, err := musterv1.NewAgentClient(conn).Session(metadata.AppendToOutgoingContext(ctx, "x-evil", "yes"))
	if err != nil {
		r.answered("Session", err)
		return
	}
	tx := invented(0)
	for _, m := range []*musterv1.LeaderMessage{
		{Message: &musterv1.LeaderMessage_Hello{Hello: &musterv1.LeaderHello{Cluster: r.Cluster, LeaderId: "coordinator-1", Epoch: 1}}},
		{Message: &musterv1.LeaderMessage_Cordon{Cordon: &musterv1.Cordon{Cordoned: true}}},
		{Message: &musterv1.LeaderMessage_Reserve{Reserve: &musterv1.Reserve{
			Tx: tx, Unit: "00000000-0000-4000-8000-000000000000", Epoch: 1, TtlMillis: 60_000, Name: "default/alloc/evil/0",
			Members: []*musterv1.MemberRequest{{Request: &musterv1.Request{Cpu: 1000, Gpus: 8}}},
		}}},
		{Message: &musterv1.LeaderMessage_Commit{Commit: &musterv1.Commit{Tx: tx, Epoch: 1, Revision: 1}}},
		{Message: &musterv1.LeaderMessage_Reconcile{Reconcile: &musterv1.Reconcile{Epoch: 1, Revision: 1}}},
	} {
		if stream.Send(m) != nil {
			break // Recv says why
		}
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			r.answered("Session", err)
			return
		}
		if m.GetReply() != nil {
			r.count(fmt.Sprintf("Session: obeyed with %s", m.GetReply().GetState()))
		}
	}
}
