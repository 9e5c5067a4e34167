// Package etcdcluster runs real etcd members for tests: the binary from PATH,
// a data folder and a loopback address of its own for each, plain or with TLS
// and users. It kills, stops, pauses, restarts, replaces and restores them; it
// decides nothing about what is kept in them.
//
// A cluster belongs to one test and ends with it, however that ends; the
// members' logs are shown if it failed. Methods fail the test where they
// cannot do what they say. They are for one goroutine at a time.
package etcdcluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/musterd/muster/test/prerequisite"
)

// patience bounds every wait; only a broken cluster uses it up.
const patience = 2 * time.Minute

// attempt bounds one step of an administrator, of which some are repeated, and
// one of its logins.
const attempt = 5 * time.Second

// Options of a cluster. The zero value is three plain members.
type Options struct {
	// Members is how many there are; 0 is three.
	Members int
	// TLS: members have certificates of Cluster.Authority, and want one of
	// clients and of each other.
	TLS bool
	// Auth: users are asked for. There are RootUser, and MusterUser with the
	// role that docs/store.md gives to coordinators. They have one password.
	Auth bool
	// AuthTokenTTL is how long a user's token lasts, in whole seconds; 0 is
	// etcd's own five minutes.
	AuthTokenTTL time.Duration
	// MaxTxnOps is --max-txn-ops; 0 is 2048.
	MaxTxnOps int
	// QuotaBytes is --quota-backend-bytes; 0 is etcd's own 2 GiB.
	QuotaBytes int64
	// ElectionTimeout is --election-timeout; 0 is 500 ms. Heartbeats are ten
	// times as frequent.
	ElectionTimeout time.Duration
	// Args are further flags of every member.
	Args []string
	// Host chooses a member's address, without port; nil takes a free one of
	// 127.0.0.0/8. Ports are always 2379 and 2380.
	Host func(member int) string
	// Prepare changes a member's command before it is started, e.g. its user.
	Prepare func(member int, cmd *exec.Cmd)
}

// The users of a cluster with Auth.
const (
	RootUser   = "root"
	MusterUser = "muster"
	Password   = "correct horse battery staple"
)

// Cluster is a set of members that were started together.
type Cluster struct {
	t       testing.TB
	o       Options
	binary  string
	dir     string
	ca      *Authority // nil without TLS
	members []*member
	token   string // --initial-cluster-token
	locked  bool   // users are asked for from now on
}

// Start runs a cluster and waits until the members have a leader. Without an etcd
// binary in PATH the test ends as package prerequisite decides.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	binary, err := exec.LookPath("etcd")
	if err != nil {
		prerequisite.Missing(t, "no etcd in PATH: install Debian's etcd-server")
	}
	o = o.withDefaults()
	c := &Cluster{t: t, o: o, binary: binary, dir: t.TempDir(), token: fmt.Sprintf("test-%016x", rand.Uint64())}
	if o.TLS {
		c.ca = NewAuthority(t, filepath.Join(c.dir, "pki"))
	}
	t.Cleanup(c.close)
	for i := range o.Members {
		c.members = append(c.members, c.newMember(fmt.Sprint("m", i), i))
	}
	for i := range c.members {
		c.launch(i, "new")
	}
	c.AwaitHealthy()
	if o.Auth {
		c.enableAuth()
	}
	return c
}

func (o Options) withDefaults() Options {
	if o.Members == 0 {
		o.Members = 3
	}
	if o.MaxTxnOps == 0 {
		o.MaxTxnOps = 2048
	}
	if o.ElectionTimeout == 0 {
		o.ElectionTimeout = 500 * time.Millisecond
	}
	return o
}

func (c *Cluster) newMember(name string, i int) *member {
	var host string
	if c.o.Host != nil {
		host = c.o.Host(i)
	} else {
		host = freeHost(c.t)
	}
	return &member{name: name, host: host, dir: filepath.Join(c.dir, name)}
}

// freeHost finds a loopback address on which nobody has etcd's ports. Whole
// addresses, rather than ports, so that a member that is down keeps its own:
// no outgoing connection ever takes them.
func freeHost(t testing.TB) string {
	t.Helper()
	for range 100 {
		host := fmt.Sprintf("127.%d.%d.%d", 64+rand.IntN(64), rand.IntN(256), 1+rand.IntN(254))
		free := true
		for _, port := range []string{clientPort, peerPort} {
			l, err := net.Listen("tcp", net.JoinHostPort(host, port))
			if err != nil {
				free = false
				break
			}
			_ = l.Close()
		}
		if free {
			return host
		}
	}
	t.Fatal("no free address in 127.64.0.0/10")
	return ""
}

// Size is the number of members, running or not.
func (c *Cluster) Size() int { return len(c.members) }

// Endpoint is a member's address for clients, as a URL.
func (c *Cluster) Endpoint(i int) string { return c.scheme() + "://" + c.members[i].client() }

// Endpoints are those of all members, in their order.
func (c *Cluster) Endpoints() []string {
	out := make([]string, len(c.members))
	for i := range c.members {
		out[i] = c.Endpoint(i)
	}
	return out
}

// Authority made the certificates; nil without TLS.
func (c *Cluster) Authority() *Authority { return c.ca }

// TLSFiles are what a client needs: paths of the authority, of its certificate
// and of its key. They are empty without TLS.
type TLSFiles struct{ CAFile, CertFile, KeyFile string }

// ClientTLS is a client's set of files; every call makes a new certificate.
func (c *Cluster) ClientTLS() TLSFiles {
	c.t.Helper()
	if c.ca == nil {
		return TLSFiles{}
	}
	cert, key := c.ca.Issue(c.t, Leaf{Name: "muster"})
	return TLSFiles{CAFile: c.ca.File, CertFile: cert, KeyFile: key}
}

// Admin is a client with all rights on the given members, or on all. It is
// closed with the test.
func (c *Cluster) Admin(members ...int) *clientv3.Client {
	c.t.Helper()
	ctx, cancel := within()
	defer cancel()
	client, err := c.dial(members...)
	for err != nil { // a login fails while the members change their leader
		if !pause(ctx) {
			c.t.Fatalf("etcd client: not made within %v: %v", patience, err)
		}
		client, err = c.dial(members...)
	}
	c.t.Cleanup(func() { _ = client.Close() })
	return client
}

// within is a context for one step of an administrator.
func within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

func (c *Cluster) scheme() string {
	if c.o.TLS {
		return "https"
	}
	return "http"
}

// initial is --initial-cluster.
func (c *Cluster) initial() string {
	var all []string
	for _, m := range c.members {
		all = append(all, m.name+"="+c.scheme()+"://"+m.peer())
	}
	return strings.Join(all, ",")
}

// close ends all members and shows what they said if the test failed.
func (c *Cluster) close() {
	for i, m := range c.members {
		m.end()
		if c.t.Failed() {
			c.t.Logf("member %d at %s:\n%s", i, m.client(), m.tail())
		}
	}
}
