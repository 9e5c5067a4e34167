package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/musterd/muster/coordinator/audit"
	"github.com/musterd/muster/coordinator/enroll"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/store/etcd"
	"github.com/musterd/muster/gossip"
	"github.com/musterd/muster/pki"
	"github.com/musterd/muster/pki/folder"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/rpcauth"
)

// TLSConfig makes every connection between the parts of a cluster mutual TLS,
// and encrypts the rings.
type TLSConfig struct {
	// Dir is where ca.pem, the trusted authorities, is written for clients of
	// the REST API, and private/, the identities that a restored store may lack;
	// made with mode 0755 if need be.
	Dir string
	// Files is the cluster's own authority; nil is the built-in one.
	Files *enroll.Files
	// Names are further host names and IP addresses of this coordinator, for its
	// certificate.
	Names []string
	// TTL is how long certificates are good for; 0 is enroll.DefaultTTL.
	TTL time.Duration
	// REST serves the REST API by TLS even on loopback. Elsewhere it always is.
	REST bool
}

// security is how this process proves itself. Without TLS enroll is nil.
type security struct {
	member  rpcauth.Member
	enroll  *enroll.Service
	keyring *gossip.Keyring
	web     *tls.Config // of the REST API; nil is plain HTTP
	peer    *tls.Config // of clients of others' REST API; nil is plain HTTP
}

// bind binds an address that suits how this process proves itself, and names
// the field that holds it.
func bind(c Config, field, address string) (net.Listener, error) {
	if c.TLS == nil {
		return listen(field, address)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot listen on %s: %w", field, address, err)
	}
	return l, nil
}

// openSecurity opens what the store knows of who is who.
func (d *Daemon) openSecurity(ctx context.Context, registry prometheus.Registerer) error {
	t := d.config.TLS
	if t == nil {
		d.security = security{member: d.config.ClusterToken}
		return nil
	}
	if openToLocalUsers(d.config.Etcd) {
		d.log.Warn("store_is_open_to_local_users", "endpoints", d.config.Etcd.Endpoints,
			"risk", "every local user of those hosts reads the authority's private key, and is every party of this cluster at once",
			"next", "use https endpoints with a user, or the embedded etcd (docs/store.md)")
	}
	names, err := d.names()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(t.Dir, 0o755); err != nil {
		return fmt.Errorf("tls.dir: %w", err)
	}
	private, err := folder.Open(filepath.Join(t.Dir, "private"))
	if err != nil {
		return fmt.Errorf("tls.dir: %w", err)
	}
	var keyring *gossip.Keyring
	service, err := enroll.Open(ctx, enroll.Config{
		Cluster: d.config.Cluster, ID: d.config.ID, Store: audit.Noted(d.store), Files: t.Files, Names: names, TTL: t.TTL, Folder: private, Metrics: registry, Logger: d.log,
		Changed: func(roots pki.Bundle) {
			if err := writeRoots(t.Dir, roots); err != nil {
				d.log.Error("authorities_not_written", "error", err)
			}
			if d.coordinator != nil { // once the coordinator runs: open requests by certificates are judged again
				d.coordinator.Rights().Judge()
			}
		},
	}, func(keys [][]byte) (enroll.Keyring, error) {
		var err error
		keyring, err = gossip.NewKeyring(keys)
		return keyring, err
	})
	if err != nil {
		return err
	}
	d.security = security{member: service.TLS(), enroll: service, keyring: keyring}
	if t.REST || !isLoopback(d.listen.rest.Addr()) {
		d.security.web = service.TLS().APIConfig()
		d.security.peer = service.TLS().ClientConfig(rpcauth.AnyCoordinator())
	}
	return nil
}

// openToLocalUsers reports whether an external etcd is reached without TLS and
// without a user. That is accepted on loopback alone, where every local user can
// do the same.
func openToLocalUsers(c etcd.Config) bool {
	secure := func(endpoint string) bool { return strings.HasPrefix(endpoint, "https://") }
	return len(c.Endpoints) > 0 && c.Username == "" && !slices.ContainsFunc(c.Endpoints, secure)
}

// names are what this coordinator is reached at.
func (d *Daemon) names() ([]string, error) {
	names := []string{"localhost", "127.0.0.1", "::1"}
	for field, l := range d.listen.bound() {
		address, err := rpcauth.Reachable(field, l.Addr(), d.config.Advertise)
		if err != nil {
			return nil, err
		}
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field, err)
		}
		names = append(names, host)
	}
	names = append(names, d.config.TLS.Names...)
	slices.Sort(names)
	return slices.Compact(names), nil
}

func isLoopback(a net.Addr) bool { return rpcauth.CheckLoopback("", a.String()) == nil }

// writeRoots replaces DIR/ca.pem, which is public.
func writeRoots(dir string, roots pki.Bundle) error {
	f, err := os.CreateTemp(dir, ".ca-*.pem")
	if err != nil {
		return err
	}
	_, writeErr := f.Write(pki.FormatPEM(roots))
	if err := errors.Join(writeErr, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), filepath.Join(dir, "ca.pem"))
}

// serverOptions admit the callers of a gRPC server.
func (s *security) serverOptions(rules rpcauth.Rules) []grpc.ServerOption {
	return rpcauth.Server(s.member, rules)
}

// fingerprint is for agents' heartbeats; nil without TLS.
func (s *security) fingerprint() func() string {
	if s.enroll == nil {
		return nil
	}
	return s.enroll.Fingerprint
}

// changed is closed when the fingerprint may have changed; nil without TLS.
func (s *security) changed() func() <-chan struct{} {
	if s.enroll == nil {
		return nil
	}
	return s.enroll.Changed
}

// documents is who is who for the REST API; nil without TLS.
func (s *security) documents() service.Identity {
	if s.enroll == nil {
		return nil
	}
	return enroll.Documents{Service: s.enroll}
}

// Secured is what a process needs that runs nodes beside its coordinator: their
// certificates, the gossip keys and an operator's certificate.
type Secured struct {
	Nodes      map[resource.NodeID]rpcauth.Material
	Operator   rpcauth.Material
	GossipKeys [][]byte
}

// Secure certifies nodes and one operator. It is for configurations with TLS.
func (d *Daemon) Secure(ctx context.Context, nodes []resource.NodeID, operator string) (Secured, error) {
	e := d.security.enroll
	if e == nil {
		return Secured{}, errors.New("this coordinator runs without TLS")
	}
	issued, err := e.IssueNodes(ctx, nodes)
	if err != nil {
		return Secured{}, err
	}
	person, err := e.IssueOperator(ctx, operator)
	return Secured{Nodes: issued, Operator: person, GossipKeys: d.security.keyring.Keys()}, err
}

// RESTSecure reports whether the REST API is served by TLS.
func (d *Daemon) RESTSecure() bool { return d.security.web != nil }

// reachable is a listener's address for others; openSecurity has checked that
// there is one.
func (d *Daemon) reachable(l net.Listener) string {
	address, err := rpcauth.Reachable("", l.Addr(), d.config.Advertise)
	if err != nil {
		return l.Addr().String()
	}
	return address
}

// keyChanger changes the gossip keys of the cluster; nil without TLS.
func (s *security) keyChanger() gossip.KeyChanger {
	if s.enroll == nil {
		return nil
	}
	return s.enroll
}
