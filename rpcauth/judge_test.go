package rpcauth_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/musterd/muster/pki"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/rpcauth"
)

// list is a Judge that refuses the identities on it.
type list struct {
	mu     sync.Mutex
	out    map[string]error // by identity's id
	closed chan string      // of the connections that were ended
}

func newList() *list { return &list{out: map[string]error{}, closed: make(chan string, 10)} }

func (l *list) refuse(id string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out[id] = err
}

func (l *list) Holds(peer rpcauth.Caller) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out[peer.Identity.ID]
}

func (l *list) Admit(_ context.Context, peer rpcauth.Caller) error { return l.Holds(peer) }

func (l *list) over(peer rpcauth.Caller, _ error) { l.closed <- peer.Identity.ID }

// tcp serves as a party on loopback and returns the address.
func tcp(t *testing.T, m rpcauth.Member, rules rpcauth.Rules) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(rpcauth.Server(m, rules)...)
	musterv1.RegisterCoordinatorServer(server, openCoordinator{})
	musterv1.RegisterEnrollmentServer(server, openCoordinator{})
	musterv1.RegisterAgentServer(server, openNode{})
	schedulerv1.RegisterNodeAgentServer(server, openNode{})
	go server.Serve(l)
	t.Cleanup(server.Stop)
	return l.Addr().String()
}

func dialTCP(t *testing.T, address string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// A server judges each call, each message of a stream, and ends the connection of
// a peer that is refused from then on; the others' go on.
func TestAServerEndsTheConnectionsOfWhomItsJudgeRefuses(t *testing.T) {
	c := newCA(t)
	server, judge := c.party(pki.Coordinator, "c1"), newList()
	server.SetJudge(judge, judge.over)
	address := tcp(t, server, rpcauth.CoordinatorRules())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	open := func(id string) (*grpc.ClientConn, schedulerv1.NodeAgent_HeartbeatClient) {
		conn := dialTCP(t, address, c.party(pki.Node, id).DialOptions(rpcauth.AnyCoordinator())...)
		s, err := schedulerv1.NewNodeAgentClient(conn).Heartbeat(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return conn, s
	}
	say := func(s schedulerv1.NodeAgent_HeartbeatClient, id string) error {
		_ = s.Send(&schedulerv1.HeartbeatRequest{NodeId: id}) // Recv returns the reason of a failure
		_, err := s.Recv()
		return err
	}
	n1, s1 := open("n1")
	_, s2 := open("n2")
	if err := errors.Join(say(s1, "n1"), say(s2, "n2")); err != nil {
		t.Fatal(err)
	}
	judge.refuse("n1", errors.New("n1 was banned"))
	if err := say(s1, "n1"); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "n1 was banned") {
		t.Errorf("the next message of its stream: %v", err)
	}
	if err := readNode("n1")(ctx, n1); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a call on its connection: %v", err)
	}
	_, idle := open("n1") // refused as a stream, while its connection is open
	if _, err := idle.Recv(); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a new stream: %v", err)
	}
	server.Recheck(pki.Identity{Cluster: "c", Role: pki.Node, ID: "n1"})
	for range 2 {
		if id := <-judge.closed; id != "n1" {
			t.Errorf("the connection of %s was ended", id)
		}
	}
	if err := say(s2, "n2"); err != nil {
		t.Errorf("n2 after n1 was banned: %v", err)
	}
	judge.refuse("n2", status.Error(codes.Unavailable, "not loaded"))
	if err := say(s2, "n2"); status.Code(err) != codes.Unavailable {
		t.Errorf("a judge's own status: %v", err)
	}
}

// A client asks its judge about each server that it dials, and ends the
// connection to one that is refused later.
func TestAClientLeavesAServerThatItsJudgeRefuses(t *testing.T) {
	c := newCA(t)
	leader, judge := c.party(pki.Coordinator, "c1"), newList()
	leader.SetJudge(judge, judge.over)
	address := tcp(t, c.party(pki.Node, "n1"), rpcauth.AgentRules())
	dial := append(leader.DialOptions(rpcauth.NamedNode()), grpc.WithAuthority("n1"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	session, err := musterv1.NewAgentClient(dialTCP(t, address, dial...)).Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Send(&musterv1.LeaderMessage{}); err != nil {
		t.Fatal(err)
	}
	if _, err := session.Recv(); err != nil {
		t.Fatal(err)
	}
	judge.refuse("n1", errors.New("its key was replaced"))
	leader.Recheck()
	if _, err := session.Recv(); err == nil {
		t.Error("the session goes on")
	}
	if id := <-judge.closed; id != "n1" {
		t.Errorf("the connection to %s was ended", id)
	}
	if err := looks(ctx, dialTCP(t, address, dial...)); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "its key was replaced") {
		t.Errorf("a new dial: %v", err)
	}
}

// A connection ends with its peer's certificate, whichever side has it.
func TestConnectionsEndWithTheCertificateOfThePeer(t *testing.T) {
	c := newCA(t)
	short := func(role pki.Role, id string) *rpcauth.TLS {
		key, err := pki.NewKey()
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := c.Issue(key.Public(), pki.Identity{Cluster: "c", Role: role, ID: id}, nil, time.Now(), 3*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		m := c.material(pki.Identity{Cluster: "c", Role: role, ID: id}, time.Now())
		m.Chain, m.Key = c.Chain(leaf), key
		p, err := rpcauth.NewTLS(m)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for name, parties := range map[string]func() (server, client *rpcauth.TLS){
		"the server's":              func() (server, client *rpcauth.TLS) { return short(pki.Node, "n1"), c.party(pki.Coordinator, "c1") },
		"the client's":              func() (server, client *rpcauth.TLS) { return c.party(pki.Node, "n1"), short(pki.Coordinator, "c1") },
		"the client's, an operator": func() (server, client *rpcauth.TLS) { return c.party(pki.Node, "n1"), short(pki.Operator, "ann") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, client := parties()
			ended := make(chan error, 2)
			for _, p := range []*rpcauth.TLS{server, client} {
				p.SetJudge(newList(), func(_ rpcauth.Caller, reason error) { ended <- reason })
			}
			address := tcp(t, server, rpcauth.AgentRules())
			conn := dialTCP(t, address, append(client.DialOptions(rpcauth.NamedNode()), grpc.WithAuthority("n1"))...)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := looks(ctx, conn); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err == nil || !strings.Contains(err.Error(), "expired at") {
				t.Errorf("ended because of %v", err)
			}
			if err := looks(ctx, conn); err == nil {
				t.Error("a call after that is answered")
			}
		})
	}
}

// The other cluster has the same authority: an operator may run two with one.
func TestAClientRefusesAServerOfAnotherClusterUnderItsAuthority(t *testing.T) {
	c := newCA(t)
	party := func(cluster string, role pki.Role, id string) *rpcauth.TLS {
		p, err := rpcauth.NewTLS(c.material(pki.Identity{Cluster: cluster, Role: role, ID: id}, time.Now()))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for name, c := range map[string]struct {
		server *rpcauth.TLS
		rules  rpcauth.Rules
		dial   []grpc.DialOption
	}{
		"a node meets a coordinator": {
			party("d", pki.Coordinator, "c1"), rpcauth.Rules{"/scheduler.v1.NodeAgent/": {Open: true}},
			party("c", pki.Node, "n1").DialOptions(rpcauth.AnyCoordinator()),
		},
		"a leader meets a node": {
			party("d", pki.Node, "n1"), rpcauth.Rules{"/scheduler.v1.NodeAgent/": {Open: true}},
			append(party("c", pki.Coordinator, "c1").DialOptions(rpcauth.NamedNode()), grpc.WithAuthority("n1")),
		},
	} {
		err := looks(t.Context(), dialTCP(t, tcp(t, c.server, c.rules), c.dial...))
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "of another cluster") {
			t.Errorf("%s of another cluster: %v", name, err)
		}
	}
}
