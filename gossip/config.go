package gossip

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"

	"github.com/musterd/muster/gossip/digest"
	"github.com/musterd/muster/resource"
)

// DefaultCell is the cell of nodes that name none.
const DefaultCell = "0"

// maxCluster bounds a cluster's name: a label holds 255 bytes with the rest.
const maxCluster = 63

// Config configures a process as a member of both rings of one cluster and
// cell.
type Config struct {
	// Cluster names the cluster: 1 to 63 letters, digits, '-', '_' and '.'.
	Cluster string
	// Cell is the capacity ring's cell; empty is DefaultCell.
	Cell string
	// Tags identify this process. Tags.ID is the member's name in both rings
	// and must be unique in each; Cell and Capacity are filled in by Start.
	Tags Tags
	// SerfBind and CapacityBind are "host:port", used for TCP and UDP: on a
	// loopback address without a Keyring, on any with one. Port 0 takes a free
	// one.
	SerfBind     string
	CapacityBind string
	// Advertise is the IP address that others reach this member at; "" is the
	// one it is bound to.
	Advertise string
	// Join lists serf addresses of other members; any one that answers is
	// enough. The capacity ring is found through the tags of serf's members.
	Join []string
	// CapacityJoin lists further addresses of the capacity ring; seldom needed.
	CapacityJoin []string
	RPC          RPC
	// Keyring encrypts both rings; nil leaves them in plain text, and then they
	// stay on loopback. It is shared, not copied.
	Keyring *Keyring
	// Keys carries out `serf keys` on the RPC port of a coordinator's host. nil
	// refuses: agents receive their keys from coordinators.
	Keys KeyChanger
	// Transports carries both rings; nil is the host's network.
	Transports Transports
	Profile    Profile
	// Queries answers operators' queries by name. Every member of the ring may
	// ask, and members forge names: no answer may contain a tenant's secrets.
	Queries map[string]QueryHandler
	// Local answers the same queries for operators of this host, who have shown
	// the token of the RPC port. Queries that it does not name are answered as for
	// the ring.
	Local map[string]QueryHandler
	// OnMember, OnHint and OnDigest may be nil; see their types.
	OnMember func(Member)
	OnHint   func(Hint)
	OnDigest func(DigestEvent)
	Logger   *slog.Logger
}

// RPC is where the stock serf CLI reaches this member. The zero value opens
// nothing.
type RPC struct {
	Addr  string // "host:port" on a loopback address; port 0 takes a free one
	Token string // required with Addr
	// Optional logs an address that is in use and goes on without the port.
	Optional bool
}

func (r RPC) validate() error {
	if r.Addr == "" {
		return nil
	}
	if r.Token == "" {
		return fmt.Errorf("serf RPC address %q: no token; set one, or leave the address empty to open no RPC port", r.Addr)
	}
	_, err := bindAddress("serf RPC address", r.Addr, nil)
	return err
}

func validCluster(name string) error {
	if len(name) == 0 || len(name) > maxCluster {
		return fmt.Errorf("cluster name %q: %d bytes, want 1 to %d", name, len(name), maxCluster)
	}
	if err := digest.ValidNodeID(resource.NodeID(name)); err != nil {
		return fmt.Errorf("cluster name %q: want letters, digits, '-', '_' or '.'", name)
	}
	return nil
}

// bindAddress parses "host:port" and refuses addresses reachable from outside
// while there is no keyring. The host "localhost" is 127.0.0.1.
func bindAddress(field, text string, keyring *Keyring) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%s %q: want host:port", field, text)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	addr, err := netip.ParseAddrPort(net.JoinHostPort(host, port))
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%s %q: want an IP address and a port from 0 to 65535", field, text)
	}
	if keyring == nil && !addr.Addr().IsLoopback() {
		return netip.AddrPort{}, fmt.Errorf("%s %q: not a loopback address; use 127.0.0.1 or [::1]", field, text)
	}
	return addr, nil
}

// checkAdvertise wants an IP address or nothing.
func checkAdvertise(text string) error {
	if text == "" {
		return nil
	}
	if addr, err := netip.ParseAddr(text); err != nil || addr.IsUnspecified() {
		return fmt.Errorf("advertised address %q: want an IP address that others can reach", text)
	}
	return nil
}

// joinAddresses checks the form of addresses to join and spells "localhost" as
// members spell themselves.
func joinAddresses(list []string) ([]string, error) {
	out := make([]string, 0, len(list))
	for i, text := range list {
		host, port, err := net.SplitHostPort(text)
		if err != nil {
			return nil, fmt.Errorf("join address %d %q: want host:port", i+1, text)
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || host == "" {
			return nil, fmt.Errorf("join address %d %q: want a host and a port from 1 to 65535", i+1, text)
		}
		if host == "localhost" {
			host = "127.0.0.1"
		}
		out = append(out, net.JoinHostPort(host, port))
	}
	return out, nil
}

func loggerOr(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l
}
