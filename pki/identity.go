package pki

import (
	"crypto/x509"
	"fmt"
	"net/url"
	"strings"
)

// Role is the role of a party in its cluster.
type Role string

// The roles, as they stand in certificates.
const (
	Node        Role = "node"        // the agent of one host
	Coordinator Role = "coordinator" // may lead
	Operator    Role = "operator"    // reads the status of agents
	User        Role = "user"        // uses the API; its ID is that of an access token
)

// scheme is the URI scheme of identities.
const scheme = "muster"

// maxName bounds each part of an identity, in bytes.
const maxName = 63

// Identity names one party. Its text, muster://CLUSTER/ROLE/ID, is the only
// URI name of its certificate (RFC 5280, section 4.2.1.6).
type Identity struct {
	Cluster string
	Role    Role
	ID      string
}

// String is the identity's URI.
func (i Identity) String() string {
	return scheme + "://" + i.Cluster + "/" + string(i.Role) + "/" + i.ID
}

// Check returns the first fault of an identity, nil if it has none.
func (i Identity) Check() error {
	switch i.Role {
	case Node, Coordinator, Operator, User:
	default:
		return fmt.Errorf("identity %q: role %q: want node, coordinator, operator or user", i, i.Role)
	}
	if !isName(i.Cluster) || !isName(i.ID) {
		return fmt.Errorf("identity %q: want cluster and id of 1 to %d letters, digits, '-', '_' and '.', the first a letter or digit", i, maxName)
	}
	return nil
}

func isName(s string) bool {
	if s == "" || len(s) > maxName {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case i > 0 && (c == '-' || c == '_' || c == '.'):
		default:
			return false
		}
	}
	return true
}

// ParseIdentity is the inverse of String. It refuses all other texts: no port, user,
// query, fragment, escape or further path.
func ParseIdentity(text string) (Identity, error) {
	rest, ok := strings.CutPrefix(text, scheme+"://")
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 3 {
		return Identity{}, fmt.Errorf("identity %q: want %s://CLUSTER/ROLE/ID", clip(text), scheme)
	}
	i := Identity{Cluster: parts[0], Role: Role(parts[1]), ID: parts[2]}
	return i, i.Check()
}

// IdentityOf reads the identity of a certificate: its only URI name. That the
// certificate can be trusted is for Verify to say.
func IdentityOf(c *x509.Certificate) (Identity, error) {
	if len(c.URIs) != 1 {
		return Identity{}, fmt.Errorf("certificate of %q has %d URI names, want the one of a %s identity", clip(c.Subject.CommonName), len(c.URIs), scheme)
	}
	return ParseIdentity(c.URIs[0].String())
}

func (i Identity) uri() *url.URL {
	return &url.URL{Scheme: scheme, Host: i.Cluster, Path: "/" + string(i.Role) + "/" + i.ID}
}

// clip shortens a text from outside for a message.
func clip(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
