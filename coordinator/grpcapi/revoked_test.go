package grpcapi

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	"github.com/musterd/muster/test/resttest"
)

// endless is a cluster where work never runs: a request with wait goes on until the end
// of the context.
type endless struct {
	*resttest.Cluster
	waits chan struct{} // a request waits
}

func (e *endless) forever(ctx context.Context) error {
	e.waits <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

func (e *endless) GetAllocation(ctx context.Context, namespace, name string, wait time.Duration) (*api.Allocation, error) {
	if wait > 0 {
		return nil, e.forever(ctx)
	}
	return e.Cluster.GetAllocation(ctx, namespace, name, wait)
}

func (e *endless) CreateAllocation(ctx context.Context, c service.Create, a *api.Allocation) (*api.Allocation, error) {
	if c.Wait > 0 {
		return nil, e.forever(ctx)
	}
	return e.Cluster.CreateAllocation(ctx, c, a)
}

func (e *endless) GetJob(ctx context.Context, namespace, name string, wait time.Duration) (*api.Job, error) {
	if wait > 0 {
		return nil, e.forever(ctx)
	}
	return e.Cluster.GetJob(ctx, namespace, name, wait)
}

func (e *endless) CreateJob(ctx context.Context, c service.Create, j *api.Job) (*api.Job, error) {
	if c.Wait > 0 {
		return nil, e.forever(ctx)
	}
	return e.Cluster.CreateJob(ctx, c, j)
}

// session opens a session, and waits for the first output of the command.
func (g doorway) session(token string, open *apiv1.ExecOpen) grpc.BidiStreamingClient[apiv1.ExecRequest, apiv1.ExecAnswer] {
	g.t.Helper()
	stream, err := apiv1.NewJobsClient(g.conn).Exec(g.as(token))
	if err == nil {
		err = stream.Send(opening(open))
	}
	for range 2 {
		if err == nil {
			_, err = stream.Recv()
		}
	}
	if err != nil {
		g.t.Fatal(err)
	}
	return stream
}

// A long call of gRPC ends when the caller's token is revoked or rotated away, and when the
// caller's roles change: each kind of long calls, with the status of the refusal. The
// administrator's session goes on.
func TestACallEndsWithItsToken(t *testing.T) {
	const ok = codes.OK
	wait := durationpb.New(time.Minute)
	// Each opens a call, and returns a wait for the end of the call.
	calls := map[string]func(g doorway, token string) (end func() error){
		"a session": func(g doorway, token string) func() error {
			stream := g.session(token, &apiv1.ExecOpen{Namespace: "ml", Name: "train", Command: []string{"cat"}, Input: true})
			return func() error { _, err := stream.Recv(); return err }
		},
		"a session with the own command": func(g doorway, token string) func() error {
			stream := g.session(token, &apiv1.ExecOpen{Namespace: "ml", Name: "train", Attach: true})
			return func() error { _, err := stream.Recv(); return err }
		},
		"output that is followed": func(g doorway, token string) func() error {
			stream, err := apiv1.NewJobsClient(g.conn).Logs(g.as(token), &apiv1.LogsRequest{Namespace: "ml", Name: "train", Follow: true})
			if err == nil {
				_, err = stream.Recv()
			}
			if err != nil {
				g.t.Fatal(err)
			}
			return func() error { _, err := stream.Recv(); return err }
		},
		"a watch": func(g doorway, token string) func() error {
			stream, err := apiv1.NewAllocationsClient(g.conn).Watch(g.as(token), &apiv1.WatchRequest{Namespace: "ml"})
			if err == nil {
				_, err = stream.Recv() // the bookmark
			}
			if err != nil {
				g.t.Fatal(err)
			}
			return func() error { _, err := stream.Recv(); return err }
		},
		"an allocation that is waited for": waitsFor(func(ctx context.Context, c *grpc.ClientConn) error {
			_, err := apiv1.NewAllocationsClient(c).Get(ctx, &apiv1.GetRequest{Namespace: "ml", Name: "a", Wait: wait})
			return err
		}),
		"a job that is waited for": waitsFor(func(ctx context.Context, c *grpc.ClientConn) error {
			_, err := apiv1.NewJobsClient(c).Get(ctx, &apiv1.GetRequest{Namespace: "ml", Name: "a", Wait: wait})
			return err
		}),
		"an allocation that is made and waited for": waitsFor(func(ctx context.Context, c *grpc.ClientConn) error {
			_, err := apiv1.NewAllocationsClient(c).Create(ctx, &apiv1.CreateAllocationRequest{Namespace: "ml", Allocation: asMessage(someUnit, new(apiv1.Allocation)), Wait: wait})
			return err
		}),
		"a job that is made and waited for": waitsFor(func(ctx context.Context, c *grpc.ClientConn) error {
			_, err := apiv1.NewJobsClient(c).Create(ctx, &apiv1.CreateJobRequest{Namespace: "ml", Job: asMessage(someGang, new(apiv1.Job)), Wait: wait})
			return err
		}),
	}
	ends := map[string]struct {
		end  func(g doorway, id string) error
		want codes.Code
	}{
		"is revoked": {func(g doorway, id string) error {
			_, err := apiv1.NewAccessTokensClient(g.conn).Delete(g.as("admin"), &apiv1.RemoveRequest{Name: id})
			return err
		}, codes.Unauthenticated},
		"is rotated away": {func(g doorway, id string) error {
			_, err := apiv1.NewAccessTokensClient(g.conn).Rotate(g.as("admin"), &apiv1.RotateRequest{Name: id, Options: &apiv1.RotateOptions{Overlap: "0s"}})
			return err
		}, codes.Unauthenticated},
		"has other roles": {func(g doorway, _ string) error { return g.bind("tenant-admin") }, codes.PermissionDenied},
	}
	for call, open := range calls {
		for name, c := range ends {
			t.Run(call+"/"+name, func(t *testing.T) {
				g := newGate(t)
				g.cluster.SetOutput("ml", "train", api.LogChunk{Node: "n1", Transaction: "tx", Data: "a"})
				g.cluster.HoldOutput("ml", "train")
				if err := g.bind("editor"); err != nil {
					t.Fatal(err)
				}
				made := g.token(&apiv1.AccessTokenSpec{User: "ada"})
				other := g.session("admin", &apiv1.ExecOpen{Namespace: "ml", Name: "train", Command: []string{"cat"}, Input: true})
				end := open(g, made.GetStatus().GetToken())
				if err := c.end(g, made.GetMetadata().GetName()); err != nil {
					t.Fatal(err)
				}
				if err := end(); status.Code(err) != c.want {
					t.Errorf("the call ends with %v, want %v", err, c.want)
				}
				if err := other.Send(input("still here")); err != nil {
					t.Fatal(err)
				}
				if m, err := other.Recv(); status.Code(err) != ok || string(m.GetOutput()) != "still here" {
					t.Errorf("the administrator's session has %v, %v", m, err)
				}
			})
		}
	}
}

const (
	someUnit = `{"metadata":{"name":"a"},"spec":{"resources":{"requests":{"cpu":"1"}}}}`
	someGang = `{"metadata":{"name":"a"},"spec":{"template":{"spec":{"resources":{"requests":{"cpu":"1"}}}}}}`
)

// bind gives ada a role in the tenant ml, in place of another.
func (g doorway) bind(role string) error {
	_, err := apiv1.NewRoleBindingsClient(g.conn).Update(g.as("admin"), &apiv1.RoleBinding{
		Kind: "RoleBinding", Metadata: &apiv1.ObjectMeta{Name: "ml.ada"},
		Spec: &apiv1.RoleBindingSpec{Role: role, Tenant: "ml", Subjects: []*apiv1.Subject{{Kind: "User", Name: "ada"}}},
	})
	return err
}

// waitsFor begins a call with a single answer, until the cluster waits.
func waitsFor(call func(context.Context, *grpc.ClientConn) error) func(doorway, string) func() error {
	return func(g doorway, token string) func() error {
		ctx, cancel := context.WithTimeout(g.as(token), 20*time.Second) // a wait without an end fails
		g.t.Cleanup(cancel)
		answer := make(chan error, 1)
		go func() { answer <- call(ctx, g.conn) }()
		select {
		case <-g.cluster.waits:
		case err := <-answer:
			g.t.Fatal("the call does not wait:", err)
		}
		return func() error { return <-answer }
	}
}
