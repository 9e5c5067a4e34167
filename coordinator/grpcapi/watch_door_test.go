package grpcapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/follow"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/store/mem"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/resttest"
)

// followed serves the watches of a follower with the refusals of a coordinator.
type followed struct{ *follow.Follower }

func (f followed) Watch(ctx context.Context, o objects.WatchOptions) (service.Watch, error) {
	w, err := f.Follower.Watch(ctx, o)
	if err != nil {
		return nil, goneOf(err)
	}
	return followedWatch{w}, nil
}

type followedWatch struct{ *follow.Watch }

func (w followedWatch) Next(ctx context.Context) (objects.Changes, error) {
	c, err := w.Watch.Next(ctx)
	return c, goneOf(err)
}

func goneOf(err error) error {
	var gone *objects.GoneError
	if errors.As(err, &gone) {
		return api.Errorf(http.StatusGone, "%v", err)
	}
	return err
}

// watchDoor is a coordinator that follows a store, with both codecs on one
// listener.
type watchDoor struct {
	api  *API
	web  *http.Client
	conn *grpc.ClientConn
}

func openWatchDoor(t *testing.T, back *mem.Store) watchDoor {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	f := follow.New(follow.Options{
		Store: back, Log: quiet, Check: time.Second, Leads: func() bool { return false },
		Moved: func(resource.Revision) {}, Registered: func(follow.News) {}, Forget: func(context.Context, *record.WentBackError) {},
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{}, 2)
	go func() { f.Run(ctx); done <- struct{}{} }()
	beside := resttest.New(time.Now, resttest.Node{Name: "n1", CPUs: 4, Memory: 8 << 30})
	d := watchDoor{api: &API{Service: beside, Watches: followed{f}, Authenticator: bearers{}, AnswerBy: rest.AnswerBy}}
	public := d.api.NewServer()
	server := rest.NewServer(rest.WithGRPC(public, rest.NewHandler(rest.Config{Service: beside, Authenticator: bearers{}, Watches: followed{f}})), quiet)
	listener := bufconn.Listen(1 << 16)
	go func() { _ = server.Serve(listener); done <- struct{}{} }()
	dial := func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }
	var err error
	if d.conn, err = grpc.NewClient("passthrough:///coordinator", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dial)); err != nil {
		t.Fatal(err)
	}
	two := new(http.Protocols)
	two.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: two, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return listener.DialContext(ctx) }}
	d.web = &http.Client{Transport: transport}
	t.Cleanup(func() {
		_ = d.conn.Close()
		transport.CloseIdleConnections()
		public.Stop()
		_ = server.Close()
		stop()
		<-done
		<-done
	})
	return d
}

// bearing is a context of a caller.
func bearing(t *testing.T, token string) context.Context {
	t.Helper()
	return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
}

// kindsWatched are the watches of all kinds: the path below /api/v1 and the call.
func kindsWatched() map[string]func(context.Context, *grpc.ClientConn, *apiv1.WatchRequest) (func() (proto.Message, error), error) {
	return map[string]func(context.Context, *grpc.ClientConn, *apiv1.WatchRequest) (func() (proto.Message, error), error){
		"allocations": func(ctx context.Context, c *grpc.ClientConn, r *apiv1.WatchRequest) (func() (proto.Message, error), error) {
			return receiving(apiv1.NewAllocationsClient(c).Watch(ctx, r))
		},
		"jobs": func(ctx context.Context, c *grpc.ClientConn, r *apiv1.WatchRequest) (func() (proto.Message, error), error) {
			return receiving(apiv1.NewJobsClient(c).Watch(ctx, r))
		},
		"nodes": func(ctx context.Context, c *grpc.ClientConn, r *apiv1.WatchRequest) (func() (proto.Message, error), error) {
			return receiving(apiv1.NewNodesClient(c).Watch(ctx, r))
		},
		"resourcequotas": func(ctx context.Context, c *grpc.ClientConn, r *apiv1.WatchRequest) (func() (proto.Message, error), error) {
			return receiving(apiv1.NewResourceQuotasClient(c).Watch(ctx, r))
		},
		"quotatrees": func(ctx context.Context, c *grpc.ClientConn, r *apiv1.WatchRequest) (func() (proto.Message, error), error) {
			return receiving(apiv1.NewQuotaTreesClient(c).Watch(ctx, r))
		},
		"quotaforests": func(ctx context.Context, c *grpc.ClientConn, r *apiv1.WatchRequest) (func() (proto.Message, error), error) {
			return receiving(apiv1.NewQuotaForestsClient(c).Watch(ctx, r))
		},
		"quotabindings": func(ctx context.Context, c *grpc.ClientConn, r *apiv1.WatchRequest) (func() (proto.Message, error), error) {
			return receiving(apiv1.NewQuotaBindingsClient(c).Watch(ctx, r))
		},
		"tenants": func(ctx context.Context, c *grpc.ClientConn, r *apiv1.WatchRequest) (func() (proto.Message, error), error) {
			return receiving(apiv1.NewTenantsClient(c).Watch(ctx, r))
		},
		"tokens": func(ctx context.Context, c *grpc.ClientConn, r *apiv1.WatchRequest) (func() (proto.Message, error), error) {
			return receiving(apiv1.NewAccessTokensClient(c).Watch(ctx, r))
		},
		"rolebindings": func(ctx context.Context, c *grpc.ClientConn, r *apiv1.WatchRequest) (func() (proto.Message, error), error) {
			return receiving(apiv1.NewRoleBindingsClient(c).Watch(ctx, r))
		},
		"events": func(ctx context.Context, c *grpc.ClientConn, r *apiv1.WatchRequest) (func() (proto.Message, error), error) {
			return receiving(apiv1.NewEventsClient(c).Watch(ctx, r))
		},
		"namespaces": func(ctx context.Context, c *grpc.ClientConn, r *apiv1.WatchRequest) (func() (proto.Message, error), error) {
			return receiving(apiv1.NewNamespacesClient(c).Watch(ctx, r))
		},
	}
}

func receiving[E any](stream grpc.ServerStreamingClient[E], err error) (func() (proto.Message, error), error) {
	if err != nil {
		return nil, err
	}
	return func() (proto.Message, error) {
		e, err := stream.Recv()
		if err != nil {
			return nil, err
		}
		return any(e).(proto.Message), nil
	}, nil
}

// overREST reads a watch as lines of JSON until its context ends.
func (d watchDoor) overREST(ctx context.Context, path string, take func(line string)) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://coordinator/api/v1/"+path, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer admin")
	r.Header.Set("Accept", "application/json")
	answer, err := d.web.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.ProtoMajor != 2 || answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s", answer.Proto, answer.Status)
	}
	lines := json.NewDecoder(answer.Body)
	for {
		var line json.RawMessage
		if err := lines.Decode(&line); err != nil {
			return err
		}
		take(string(line))
	}
}

// asEvent is the message that a line of REST has.
func asEvent(t *testing.T, line string, e proto.Message) proto.Message {
	t.Helper()
	var given struct {
		Type   string
		Object json.RawMessage
		ID     string
	}
	if err := json.Unmarshal([]byte(line), &given); err != nil {
		t.Fatal(err)
	}
	m := e.ProtoReflect().New()
	fields := m.Descriptor().Fields()
	typed := fields.ByName("type")
	m.Set(typed, protoreflect.ValueOfEnum(typed.Enum().Values().ByName(protoreflect.Name(given.Type)).Number()))
	if given.ID != "" {
		id, err := objects.ParseID(given.ID)
		if err != nil {
			t.Fatal(err)
		}
		m.Set(fields.ByName("id"), protoreflect.ValueOfMessage(watchID(id).ProtoReflect()))
	}
	if given.Type != "BOOKMARK" {
		object := m.Mutable(fields.ByName("object")).Message()
		if _, err := toMessage(given.Object, object.Interface()); err != nil {
			t.Fatal(err)
		}
	}
	return m.Interface()
}

// put writes an allocation of namespace ml.
func put(t *testing.T, back *mem.Store, name, team string) {
	t.Helper()
	unit := record.Unit{
		UID: resource.UnitUID("uid-" + name), Kind: record.AllocUnit, Namespace: "ml", Name: name, Tenant: "ml", Queue: "default", Phase: string(api.Pending), Members: 1,
		Document: fmt.Appendf(nil, `{"metadata":{"name":%q,"labels":{"team":%q}},"spec":{"resources":{"requests":{"cpu":"1"}}}}`, name, team),
	}
	if _, err := back.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(unit.Path().Key(), record.MustEncode(unit))}}); err != nil {
		t.Fatal(err)
	}
}

// told is the next n events of a watch, in short.
func told(t *testing.T, stream grpc.ServerStreamingClient[apiv1.AllocationWatchEvent], n int) (list []string) {
	t.Helper()
	for range n {
		e, err := stream.Recv()
		if err != nil {
			t.Fatalf("%v after %q", err, list)
		}
		at := "-"
		if id := e.GetId(); id != nil {
			at = fmt.Sprint(id.GetRevision())
			if id.Index != nil {
				at += fmt.Sprintf(".%d", id.GetIndex())
			}
		}
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s %s", at, e.GetType(), e.GetObject().GetMetadata().GetName())))
	}
	return list
}

func expectTold(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
