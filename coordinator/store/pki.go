package store

import (
	"errors"
	"fmt"

	"github.com/musterd/muster/resource"
)

// The keys of who is who (docs/security.md). Whoever reads PKIPrefix can make
// himself anybody: only coordinators may.
const (
	PKIPrefix = Root + "pki/"
	// AuthoritiesKey holds Authorities.
	AuthoritiesKey = PKIPrefix + "authorities"
	// GossipKeysKey holds GossipKeys.
	GossipKeysKey = PKIPrefix + "gossip"
	// TokensPrefix and EnrolledPrefix hold BootstrapToken by id and Enrolled by
	// node.
	TokensPrefix   = PKIPrefix + "tokens/"
	EnrolledPrefix = PKIPrefix + "nodes/"
)

// TokenKey is the key of a bootstrap token.
func TokenKey(id string) string { return join(TokensPrefix, id) }

// EnrolledKey is the key of what a node was certified for.
func EnrolledKey(node resource.NodeID) string { return join(EnrolledPrefix, string(node)) }

// ParseEnrolledKey is the inverse of EnrolledKey.
func ParseEnrolledKey(key string) (resource.NodeID, error) {
	var node string
	err := split("enrolled node", key, EnrolledPrefix, &node)
	return resource.NodeID(node), err
}

// Authorities is the built-in CA: every root that is trusted, oldest first. The
// newest signs.
type Authorities struct {
	Cluster string          `json:"cluster"`
	Roots   []AuthorityRoot `json:"roots"`
}

// AuthorityRoot is one root. Certificates and keys are in DER.
type AuthorityRoot struct {
	ID          string `json:"id"` // its key's identifier, hex
	Certificate []byte `json:"certificate"`
	Key         []byte `json:"key"` // PKCS #8
	// Cross are certificates of this root's key by the roots before it.
	Cross   [][]byte `json:"cross,omitempty"`
	Created string   `json:"created"` // RFC 3339
}

// GossipKeys encrypt both rings; the first one is used to send.
type GossipKeys struct {
	Keys [][]byte `json:"keys"`
}

// BootstrapToken is what is kept of a bootstrap token.
type BootstrapToken struct {
	ID   string `json:"id"`
	Hash string `json:"hash"` // pki.Token.Hash
	// Nodes is the pattern of the node ids it is good for.
	Nodes string `json:"nodes"`
	// Uses is how many hosts it may still let in.
	Uses int `json:"uses"`
	// Replace lets in a host whose node id exists already: the one before loses
	// its certificate.
	Replace bool `json:"replace,omitempty"`
	// Labels are given to each node that the token lets in, as an operator's.
	Labels  map[string]string `json:"labels,omitempty"`
	Creator string            `json:"creator,omitempty"`
	Created string            `json:"created"` // RFC 3339
	Expires string            `json:"expires"` // RFC 3339; decided by the coordinator's clock
}

// Enrolled is what a node was certified for.
type Enrolled struct {
	// Keys are SHA-256 of the node's public keys, in hex: the newest, and the
	// one before it until the newest has been used. Others are no longer its.
	Keys []string `json:"keys"`
	// Issuer is the root that signed the newest certificate.
	Issuer  string `json:"issuer"`
	Expires string `json:"expires"` // of the newest certificate, RFC 3339
	// Token is the id of the bootstrap token that let the node in.
	Token string `json:"token,omitempty"`
	// Labels are the token's.
	Labels   map[string]string `json:"labels,omitempty"`
	Enrolled string            `json:"enrolled"` // RFC 3339
}

func (r Authorities) check() error {
	if r.Cluster == "" || len(r.Roots) == 0 {
		return fmt.Errorf("cluster %q and %d roots: want a name and at least one", r.Cluster, len(r.Roots))
	}
	for i, root := range r.Roots {
		if root.ID == "" || len(root.Certificate) == 0 || len(root.Key) == 0 {
			return fmt.Errorf("roots[%d] %q: want id, certificate and key", i, root.ID)
		}
	}
	return nil
}

func (r GossipKeys) check() error {
	if len(r.Keys) == 0 {
		return errors.New("keys: want at least one")
	}
	for i, k := range r.Keys {
		if n := len(k); n != 16 && n != 24 && n != 32 {
			return fmt.Errorf("keys[%d]: %d bytes, want 16, 24 or 32", i, n)
		}
	}
	return nil
}

func (r BootstrapToken) check() error {
	switch {
	case r.ID == "" || r.Hash == "" || r.Nodes == "":
		return fmt.Errorf("token %q for nodes %q: want id, hash and nodes", r.ID, r.Nodes)
	case r.Uses < 0:
		return fmt.Errorf("uses %d is negative", r.Uses)
	}
	return nil
}

func (r Enrolled) check() error {
	if n := len(r.Keys); n < 1 || n > 2 {
		return fmt.Errorf("keys: %d of them, want 1 or 2", n)
	}
	return nil
}
