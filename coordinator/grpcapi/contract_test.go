package grpcapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/proto"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	"github.com/musterd/muster/test/resttest"
	"github.com/musterd/muster/wire"
)

// bearers knows the admin and the tenant ml.
type bearers struct{}

func (bearers) Authenticate(_ context.Context, token string) (service.Principal, error) {
	switch token {
	case "admin":
		return service.Principal{Name: "root", Admin: true}, nil
	case "ml":
		return service.Principal{Name: "ann", Tenant: "ml"}, nil
	case "lab":
		return service.Principal{Name: "eve", Tenant: "lab"}, nil
	}
	return service.Principal{}, context.Canceled
}

// door serves one cluster over REST and gRPC on one port, as a coordinator does.
func door(t *testing.T, cluster service.Service, forward *service.Forward) (address string) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	public := &API{Service: cluster, Authenticator: bearers{}, Logger: quiet}
	if n, knows := cluster.(interface{ Notices() []string }); knows {
		public.Notices = n.Notices
	}
	if forward != nil {
		public.Relay = &Relay{
			Forward: forward, Revision: func() int64 { return 0 }, Dial: []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())},
			At: func(l service.Leader) string { return l.Address },
		}
		t.Cleanup(func() {
			if err := public.Relay.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	grpcServer := public.NewServer()
	web := rest.NewHandler(rest.Config{Service: cluster, Authenticator: bearers{}, Forward: forward})
	server := rest.NewServer(rest.WithGRPC(grpcServer, web), quiet)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		grpcServer.Stop()
		_ = server.Close()
		<-done
	})
	return listener.Addr().String()
}

func connect(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// One table of requests gives the same objects and the same refusals over REST
// and over gRPC, at the leader and through a follower.
func TestRESTAndGRPCAnswerAlike(t *testing.T) {
	for at, through := range map[string]func(t *testing.T, cluster service.Service) string{
		"the leader": func(t *testing.T, cluster service.Service) string { return door(t, cluster, nil) },
		"a follower": func(t *testing.T, cluster service.Service) string {
			leader := service.Leader{ID: "l", Address: door(t, cluster, nil)}
			return door(t, away(), service.NewForward("f", throne{leader}, time.Second, nil))
		},
	} {
		t.Run("at "+at, func(t *testing.T) {
			now := func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }
			node := resttest.Node{Name: "n1", CPUs: 16, Memory: 64 << 30, GPUs: 4}
			web := through(t, resttest.New(now, node).StandStill())
			conn := connect(t, through(t, resttest.New(now, node).StandStill()))
			for _, s := range story() {
				t.Run(s.method+" "+s.path, func(t *testing.T) {
					code, body := s.overREST(t, web)
					ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+s.bearer())
					got, err := s.call(ctx, conn)
					if code != s.code {
						t.Fatalf("REST answers %d %s, want %d", code, body, s.code)
					}
					if code > 299 {
						sameRefusal(t, body, err)
						return
					}
					if err != nil {
						t.Fatalf("gRPC refuses: %v; REST answers %s", err, body)
					}
					want, err := toMessage(json.RawMessage(body), got.ProtoReflect().New().Interface())
					if err != nil {
						t.Fatal(err)
					}
					if !proto.Equal(want, got) {
						t.Errorf("REST answers\n%v\ngRPC answers\n%v", want, got)
					}
				})
			}
		})
	}
}

func sameRefusal(t *testing.T, body []byte, err error) {
	t.Helper()
	want := new(api.Status)
	if err := json.Unmarshal(body, want); err != nil {
		t.Fatal(err)
	}
	if err == nil {
		t.Fatalf("REST refuses with %+v, gRPC does not", want)
	}
	got := wire.FromRefusal(err)
	if got.RequestID == "" {
		t.Error("the refusal over gRPC has no request id")
	}
	want.RequestID, got.RequestID = "", ""
	if !reflect.DeepEqual(want, got) {
		t.Errorf("REST refuses with\n%+v\ngRPC with\n%+v", want, got)
	}
}

// throne is a Peer that knows one leader.
type throne struct{ leader service.Leader }

func (s throne) Leader(context.Context) (service.Leader, error) { return s.leader, nil }
func (throne) Reach(context.Context, int64) error               { return nil }

// away is a follower whose cache is not loaded: it answers nothing by itself.
func away() service.Service {
	return resttest.NotLeading{}
}

func TestReflectionListsTheServices(t *testing.T) {
	stream, err := reflectionv1.NewServerReflectionClient(connect(t, door(t, resttest.New(time.Now), nil))).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range answer.GetListServicesResponse().GetService() {
		names = append(names, s.GetName())
	}
	if list := strings.Join(names, " "); !strings.Contains(list, "muster.api.v1.Allocations") || !strings.Contains(list, "grpc.health.v1.Health") || strings.Contains(list, "muster.v1.Agent") {
		t.Errorf("the services are %s", list)
	}
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
	}
}

func TestARequestKeepsItsID(t *testing.T) {
	client := apiv1.NewAllocationsClient(connect(t, door(t, resttest.New(time.Now), nil)))
	for given, want := range map[string]string{"mine-1": "mine-1", "two words": "", "": ""} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer admin")
		if given != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "x-request-id", given)
		}
		var header metadata.MD
		_, err := client.Get(ctx, &apiv1.GetRequest{Namespace: "ml", Name: "gone"}, grpc.Header(&header))
		id := wire.FromRefusal(err).RequestID
		if id == "" || id == "two words" || want != "" && id != want || only(header.Get("x-request-id")) != id {
			t.Errorf("given %q: the refusal has %q, the header %q", given, id, header.Get("x-request-id"))
		}
	}
}

// Each answer warns of the mode Maintenance, once, also where the leader gives the
// answer and where the call is refused.
func TestEachAnswerWarnsOfMaintenance(t *testing.T) {
	cluster := resttest.New(time.Now)
	leader := door(t, cluster, nil)
	follower := door(t, behind{NotLeading: resttest.NotLeading{}, notices: cluster.Notices}, service.NewForward("f", throne{service.Leader{ID: "l", Address: leader}}, time.Second, nil))
	warnings := func(address string) string {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer admin")
		var header metadata.MD
		_, err := apiv1.NewAllocationsClient(connect(t, address)).Get(ctx, &apiv1.GetRequest{Namespace: "ml", Name: "gone"}, grpc.Header(&header))
		if s := wire.FromRefusal(err); s == nil || s.Code != 404 {
			t.Errorf("got %v", err)
		}
		return strings.Join(header.Get(warningKey), "\n")
	}
	for _, address := range []string{leader, follower} {
		if got := warnings(address); got != "" {
			t.Errorf("in the mode Normal: %q", got)
		}
	}
	if _, err := cluster.PatchQuotaMode(t.Context(), api.QuotaModePatch{Mode: api.ModeMaintenance}, "ada"); err != nil {
		t.Fatal(err)
	}
	for name, address := range map[string]string{"leader": leader, "follower": follower} {
		if got := warnings(address); !strings.HasPrefix(got, "quota trees are in the mode Maintenance since ") || strings.Contains(got, "\n") {
			t.Errorf("the %s warns %q", name, got)
		}
	}
}

// behind is a follower that knows the mode.
type behind struct {
	resttest.NotLeading
	notices func() []string
}

func (b behind) Notices() []string { return b.notices() }

// A fault inside the service is not shown, and the connection goes on.
func TestAFaultIsNotShown(t *testing.T) {
	client := apiv1.NewAllocationsClient(connect(t, door(t, struct{ service.Service }{}, nil)))
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer admin")
	for range 2 {
		_, err := client.Get(ctx, &apiv1.GetRequest{Namespace: "ml", Name: "a"})
		if s := wire.FromRefusal(err); s == nil || s.Code != 500 || !strings.Contains(s.Message, "failed inside the coordinator") {
			t.Errorf("got %v", err)
		}
	}
}

// Work that can never run is accepted with a warning, by a follower too.
func TestWorkThatCanNeverRunIsWarnedOf(t *testing.T) {
	leader := door(t, resttest.New(time.Now, resttest.Node{Name: "n1", CPUs: 16, Memory: 64 << 30}), nil)
	follower := door(t, away(), service.NewForward("f", throne{service.Leader{ID: "l", Address: leader}}, time.Second, nil))
	want := []string{"Never on the nodes registered now, absent ones included: a member wants 1000 CPUs, and the only node has no more than 16 CPUs. It waits until a node or a quota changes that."}
	for namespace, address := range map[string]string{"ml": leader, "speech": follower} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer admin")
		request := &apiv1.CreateAllocationRequest{Namespace: namespace, Allocation: asMessage(hugeSpec, new(apiv1.Allocation))}
		var header metadata.MD
		if _, err := apiv1.NewAllocationsClient(connect(t, address)).Create(ctx, request, grpc.Header(&header)); err != nil {
			t.Fatalf("%s: %v", namespace, err)
		}
		if diff := cmp.Diff(want, header.Get("muster-warning")); diff != "" {
			t.Errorf("%s: warnings (-want +got):\n%s", namespace, diff)
		}
	}
}
