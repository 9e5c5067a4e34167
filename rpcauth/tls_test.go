package rpcauth_test

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/musterd/muster/pki"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/rpcauth"
)

// ca is a cluster's authority in tests.
type ca struct {
	t testing.TB
	*pki.Authority
}

func newCA(t testing.TB) ca {
	t.Helper()
	a, err := pki.NewAuthority("c", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return ca{t, a}
}

func (c ca) material(i pki.Identity, from time.Time, roots ...*pki.Authority) rpcauth.Material {
	c.t.Helper()
	key, err := pki.NewKey()
	if err != nil {
		c.t.Fatal(err)
	}
	leaf, err := c.Issue(key.Public(), i, nil, from, time.Hour)
	if err != nil {
		c.t.Fatal(err)
	}
	m := rpcauth.Material{Chain: c.Chain(leaf), Key: key, Roots: pki.Bundle{c.Certificate}}
	for _, r := range roots {
		m.Roots = append(m.Roots, r.Certificate)
	}
	return m
}

func (c ca) party(role pki.Role, id string) *rpcauth.TLS {
	c.t.Helper()
	t, err := rpcauth.NewTLS(c.material(pki.Identity{Cluster: "c", Role: role, ID: id}, time.Now()))
	if err != nil {
		c.t.Fatal(err)
	}
	return t
}

// openCoordinator and openNode answer every caller that gets so far.
type openCoordinator struct {
	musterv1.UnimplementedCoordinatorServer
	musterv1.UnimplementedEnrollmentServer
}

func (openCoordinator) ReadNode(ctx context.Context, _ *musterv1.ReadNodeRequest) (*musterv1.ReadNodeResponse, error) {
	if _, err := rpcauth.CallerOf(ctx); err != nil {
		return nil, err
	}
	return &musterv1.ReadNodeResponse{}, nil
}

func (openCoordinator) Enroll(context.Context, *musterv1.EnrollRequest) (*musterv1.EnrollResponse, error) {
	return &musterv1.EnrollResponse{}, nil
}

func (openCoordinator) Renew(context.Context, *musterv1.RenewRequest) (*musterv1.EnrollResponse, error) {
	return &musterv1.EnrollResponse{}, nil
}

type openNode struct {
	schedulerv1.UnimplementedNodeAgentServer
	musterv1.UnimplementedAgentServer
}

func (openNode) GetResourceSnapshot(context.Context, *schedulerv1.SnapshotRequest) (*schedulerv1.ResourceSnapshot, error) {
	return &schedulerv1.ResourceSnapshot{}, nil
}

func (openNode) Session(s musterv1.Agent_SessionServer) error {
	for {
		if _, err := s.Recv(); err != nil {
			return err
		}
		if err := s.Send(&musterv1.AgentMessage{}); err != nil {
			return err
		}
	}
}

func (openNode) Heartbeat(s schedulerv1.NodeAgent_HeartbeatServer) error {
	for {
		if _, err := s.Recv(); err != nil {
			return err
		}
		if err := s.Send(&schedulerv1.HeartbeatResponse{}); err != nil {
			return err
		}
	}
}

// serve serves both as a party and returns the listener.
func serve(t testing.TB, m rpcauth.Member, rules rpcauth.Rules) *bufconn.Listener {
	t.Helper()
	l := bufconn.Listen(1 << 16)
	server := grpc.NewServer(rpcauth.Server(m, rules)...)
	musterv1.RegisterCoordinatorServer(server, openCoordinator{})
	musterv1.RegisterEnrollmentServer(server, openCoordinator{})
	musterv1.RegisterAgentServer(server, openNode{})
	schedulerv1.RegisterNodeAgentServer(server, openNode{})
	go server.Serve(l)
	t.Cleanup(server.Stop)
	return l
}

func client(t testing.TB, l *bufconn.Listener, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///server", append(options,
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// The calls that the tables make, each once.
func readNode(node string) func(context.Context, *grpc.ClientConn) error {
	return func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := musterv1.NewCoordinatorClient(conn).ReadNode(ctx, &musterv1.ReadNodeRequest{NodeId: node})
		return err
	}
}

func beat(node string) func(context.Context, *grpc.ClientConn) error {
	return func(ctx context.Context, conn *grpc.ClientConn) error {
		s, err := schedulerv1.NewNodeAgentClient(conn).Heartbeat(ctx)
		if err != nil {
			return err
		}
		_ = s.Send(&schedulerv1.HeartbeatRequest{NodeId: node}) // Recv returns the reason of a failure
		_, err = s.Recv()
		return err
	}
}

func enrolls(ctx context.Context, conn *grpc.ClientConn) error {
	_, err := musterv1.NewEnrollmentClient(conn).Enroll(ctx, &musterv1.EnrollRequest{NodeId: "n2"})
	return err
}

func renews(ctx context.Context, conn *grpc.ClientConn) error {
	_, err := musterv1.NewEnrollmentClient(conn).Renew(ctx, &musterv1.RenewRequest{})
	return err
}

func leads(ctx context.Context, conn *grpc.ClientConn) error {
	s, err := musterv1.NewAgentClient(conn).Session(ctx)
	if err != nil {
		return err
	}
	_ = s.Send(&musterv1.LeaderMessage{}) // Recv returns the reason of a failure
	_, err = s.Recv()
	return err
}

func looks(ctx context.Context, conn *grpc.ClientConn) error {
	_, err := schedulerv1.NewNodeAgentClient(conn).GetResourceSnapshot(ctx, &schedulerv1.SnapshotRequest{})
	return err
}

func TestWhoMayCallWhom(t *testing.T) {
	mine, theirs := newCA(t), newCA(t)
	coordinator := serve(t, mine.party(pki.Coordinator, "c1"), rpcauth.CoordinatorRules())
	agent := serve(t, mine.party(pki.Node, "n1"), rpcauth.AgentRules())
	n1, n2, c2, op := mine.party(pki.Node, "n1"), mine.party(pki.Node, "n2"), mine.party(pki.Coordinator, "c2"), mine.party(pki.Operator, "op")
	toCoordinator := func(p *rpcauth.TLS) []grpc.DialOption { return p.DialOptions(rpcauth.AnyCoordinator()) }
	toNode := func(p *rpcauth.TLS, node string) []grpc.DialOption {
		return append(p.DialOptions(rpcauth.NamedNode()), grpc.WithAuthority(node))
	}
	// nobody trusts the server, but shows no certificate; strange shows one of
	// another cluster, or none at all times.
	withCertificate := func(m rpcauth.Material) []grpc.DialOption {
		c := &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true}
		if m.Key != nil {
			c.Certificates = []tls.Certificate{{Certificate: pki.Raw(m.Chain), PrivateKey: m.Key}}
		}
		return []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(c))}
	}
	node1 := pki.Identity{Cluster: "c", Role: pki.Node, ID: "n1"}
	token, err := rpcauth.NewToken(secret)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		server *bufconn.Listener
		dial   []grpc.DialOption
		call   func(context.Context, *grpc.ClientConn) error
		want   codes.Code
		text   string
	}{
		"a node reads its own records":                  {coordinator, toCoordinator(n1), readNode("n1"), codes.OK, ""},
		"a node asks for another's":                     {coordinator, toCoordinator(n1), readNode("n2"), codes.PermissionDenied, `muster://c/node/n1 may speak of itself alone, not of node "n2"`},
		"a node asks for nobody's":                      {coordinator, toCoordinator(n1), readNode(""), codes.PermissionDenied, `not of node ""`},
		"a coordinator passes on a node's call":         {coordinator, toCoordinator(c2), readNode("n1"), codes.OK, ""},
		"an operator asks for a node's records":         {coordinator, toCoordinator(op), readNode("n1"), codes.PermissionDenied, "may not call this: it is for node, coordinator"},
		"a node's heartbeat":                            {coordinator, toCoordinator(n1), beat("n1"), codes.OK, ""},
		"a heartbeat for another node":                  {coordinator, toCoordinator(n1), beat("n2"), codes.PermissionDenied, `not of node "n2"`},
		"a coordinator's heartbeat":                     {coordinator, toCoordinator(c2), beat("c2"), codes.PermissionDenied, "it is for node"},
		"a node renews":                                 {coordinator, toCoordinator(n1), renews, codes.OK, ""},
		"a coordinator renews":                          {coordinator, toCoordinator(c2), renews, codes.PermissionDenied, "it is for node"},
		"nobody enrolls":                                {coordinator, withCertificate(rpcauth.Material{}), enrolls, codes.OK, ""},
		"nobody renews":                                 {coordinator, withCertificate(rpcauth.Material{}), renews, codes.Unauthenticated, "no certificate was shown"},
		"nobody reads":                                  {coordinator, withCertificate(rpcauth.Material{}), readNode("n1"), codes.Unauthenticated, "no certificate was shown"},
		"a node of another cluster":                     {coordinator, withCertificate(theirs.material(node1, time.Now())), readNode("n1"), codes.Unauthenticated, "none of the 1 authorities trusted here"},
		"a node of another cluster by my authority":     {coordinator, withCertificate(mine.material(pki.Identity{Cluster: "d", Role: pki.Node, ID: "n1"}, time.Now())), readNode("n1"), codes.Unauthenticated, "of another cluster"},
		"an expired certificate":                        {coordinator, withCertificate(mine.material(node1, time.Now().Add(-2*time.Hour))), readNode("n1"), codes.Unauthenticated, "expired at"},
		"a certificate of the future":                   {coordinator, withCertificate(mine.material(node1, time.Now().Add(time.Hour))), readNode("n1"), codes.Unauthenticated, "check the clocks"},
		"a plain client":                                {coordinator, token.DialOptions(rpcauth.AnyCoordinator()), readNode("n1"), codes.Unavailable, ""},
		"TLS 1.2":                                       {coordinator, []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}))}, readNode("n1"), codes.Unavailable, "protocol version"},
		"a node that meets an agent, not a coordinator": {agent, toCoordinator(n1), readNode("n1"), codes.Unavailable, "this is muster://c/node/n1, not any coordinator"},
		"a node that meets another cluster":             {serve(t, theirs.party(pki.Coordinator, "c1"), rpcauth.CoordinatorRules()), toCoordinator(n1), readNode("n1"), codes.Unavailable, "none of the 1 authorities trusted here"},
		"a node that meets a plain server":              {serve(t, token, nil), toCoordinator(n1), readNode("n1"), codes.Unavailable, ""},
		"a coordinator leads the node that it meant":    {agent, toNode(c2, "n1"), leads, codes.OK, ""},
		"a coordinator meets another node":              {agent, toNode(c2, "n2"), leads, codes.Unavailable, "this is muster://c/node/n1, not node n2"},
		"a node leads":                                  {agent, toNode(n2, "n1"), leads, codes.PermissionDenied, "it is for coordinator"},
		"an operator leads":                             {agent, toNode(op, "n1"), leads, codes.PermissionDenied, "it is for coordinator"},
		"nobody leads":                                  {agent, withCertificate(rpcauth.Material{}), leads, codes.Unauthenticated, "no certificate was shown"},
		"an operator looks":                             {agent, toNode(op, "n1"), looks, codes.OK, ""},
		"a node looks at itself":                        {agent, toNode(n1, "n1"), looks, codes.OK, ""},
		"a node looks at another":                       {agent, toNode(n2, "n1"), looks, codes.PermissionDenied, "only on itself"},
		"a call that no rule covers":                    {agent, toNode(c2, "n1"), readNode("n1"), codes.PermissionDenied, "nobody may call this"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := c.call(ctx, client(t, c.server, c.dial...))
			if status.Code(err) != c.want || (err != nil && !strings.Contains(err.Error(), c.text)) {
				t.Errorf("got %v, want %s with %q", err, c.want, c.text)
			}
		})
	}
}

// A session goes on while certificates are renewed and an authority is added. It
// ends with the certificate that it was opened with, and with that certificate's
// authority; a new one is made at once with the newest of both. All of it takes an
// hour and a half of the certificates' time.
func TestCertificatesAndAuthoritiesChangeUnderASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newCA(t)
		server, caller := first.party(pki.Node, "n1"), first.party(pki.Coordinator, "c1")
		l := serve(t, server, rpcauth.AgentRules())
		dial := append(caller.DialOptions(rpcauth.NamedNode()), grpc.WithAuthority("n1"))
		ctx, cancel := context.WithCancel(t.Context())
		var session musterv1.Agent_SessionClient
		reopen := func() {
			t.Helper()
			var err error
			if session, err = musterv1.NewAgentClient(client(t, l, dial...)).Session(ctx); err != nil {
				t.Fatal(err)
			}
		}
		say := func() error {
			_ = session.Send(&musterv1.LeaderMessage{}) // Recv returns the reason of a failure
			_, err := session.Recv()
			return err
		}
		reopen()
		over := func(when string) {
			t.Helper()
			if err := say(); err == nil {
				t.Errorf("%s: the session goes on", when)
			}
			reopen()
		}
		talk := func(when string) {
			t.Helper()
			if err := say(); err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			if err := looks(ctx, client(t, l, dial...)); err != nil {
				t.Fatalf("%s, a new connection: %v", when, err)
			}
		}
		talk("at first")
		replace := func(p *rpcauth.TLS, by ca, roots ...*pki.Authority) {
			t.Helper()
			if err := p.Replace(by.material(p.Identity(), time.Now(), roots...)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(40 * time.Minute)
		replace(server, first)
		replace(caller, first)
		talk("after a renewal")
		time.Sleep(20*time.Minute - time.Second)
		talk("just before the first certificates are over")
		time.Sleep(2 * time.Second)
		over("the first certificates are over")
		talk("with the renewed ones")

		next, err := first.Succeed("c", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		second := ca{t, next}
		replace(server, second, first.Authority) // the caller does not know it yet
		talk("one side has the new authority")
		replace(caller, second, first.Authority)
		talk("both have")
		reopen() // the one before was opened with certificates of the old authority
		replace(server, second)
		talk("one side has dropped the old one")
		replace(caller, second)
		time.Sleep(30 * time.Minute)
		talk("nobody trusts the old one")
		old := append(first.party(pki.Coordinator, "c1").DialOptions(rpcauth.NamedNode()), grpc.WithAuthority("n1"))
		if err := looks(ctx, client(t, l, old...)); err == nil {
			t.Error("a certificate of the old authority still counts")
		}
		if err := server.Replace(second.material(pki.Identity{Cluster: "c", Role: pki.Node, ID: "n2"}, time.Now())); err == nil {
			t.Error("another's certificate is taken")
		}
		cancel()
		_, _ = session.Recv()
	})
}

func TestMaterialThatProvesNothingIsRefused(t *testing.T) {
	mine, theirs := newCA(t), newCA(t)
	i := pki.Identity{Cluster: "c", Role: pki.Node, ID: "n1"}
	good := mine.material(i, time.Now())
	for want, change := range map[string]func(*rpcauth.Material){
		"the private key is another's":           func(m *rpcauth.Material) { m.Key = mine.material(i, time.Now()).Key },
		"none of the 1 authorities trusted here": func(m *rpcauth.Material) { m.Roots = pki.Bundle{theirs.Certificate} },
		"expired at":                             func(m *rpcauth.Material) { *m = mine.material(i, time.Now().Add(-2*time.Hour)) },
		"no certificate was shown":               func(m *rpcauth.Material) { m.Chain = nil },
	} {
		m := good
		change(&m)
		if _, err := rpcauth.NewTLS(m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}

func TestAnAgentOnEveryAddressSaysWhereItIs(t *testing.T) {
	for name, c := range map[string]struct{ bound, advertise, want, wantErr string }{
		"its own address":     {bound: "192.0.2.1:8472", want: "192.0.2.1:8472"},
		"an advertised one":   {bound: "[::]:8472", advertise: "192.0.2.9", want: "192.0.2.9:8472"},
		"an advertised IPv6":  {bound: "0.0.0.0:8472", advertise: "2001:db8::1", want: "[2001:db8::1]:8472"},
		"nowhere in special":  {bound: "0.0.0.0:8472", wantErr: "listen: 0.0.0.0:8472 is every address of this host: set advertise"},
		"an in-memory server": {bound: "bufconn", want: "bufconn"},
	} {
		got, err := rpcauth.Reachable("listen", address(c.bound), c.advertise)
		if got != c.want || (err == nil) != (c.wantErr == "") || (err != nil && !strings.Contains(err.Error(), c.wantErr)) {
			t.Errorf("%s: got %q, %v, want %q, %q", name, got, err, c.want, c.wantErr)
		}
	}
}

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

func BenchmarkHandshake(b *testing.B) {
	c := newCA(b)
	l := serve(b, c.party(pki.Node, "n1"), rpcauth.AgentRules())
	for name, dial := range map[string][]grpc.DialOption{
		"mutual TLS": append(c.party(pki.Coordinator, "c1").DialOptions(rpcauth.NamedNode()), grpc.WithAuthority("n1")),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := looks(b.Context(), client(b, l, dial...)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
