package record

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

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
	// BansPrefix and OperatorsPrefix hold Ban by node and Operator by the hash of
	// its key.
	BansPrefix      = PKIPrefix + "bans/"
	OperatorsPrefix = PKIPrefix + "operators/"
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

// BanKey is the key of a node's ban.
func BanKey(node resource.NodeID) string { return join(BansPrefix, string(node)) }

// ParseBanKey is the inverse of BanKey.
func ParseBanKey(key string) (resource.NodeID, error) {
	var node string
	err := split("banned node", key, BansPrefix, &node)
	return resource.NodeID(node), err
}

// OperatorKey is the key of an operator's certificate, by pki.KeyHash.
func OperatorKey(hash string) string { return join(OperatorsPrefix, hash) }

// ParseOperatorKey is the inverse of OperatorKey.
func ParseOperatorKey(key string) (hash string, err error) {
	err = split("operator's key", key, OperatorsPrefix, &hash)
	return hash, err
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
	// Rotation is under way; nil for none.
	Rotation *GossipRotation `json:"rotation,omitempty"`
}

// GossipRotation replaces all keys by a new one. First every member is given the
// new key, then all send with it, then the old keys go.
//
// Invariant: Key is among GossipKeys.Keys, and is the first of them exactly if
// Used.
type GossipRotation struct {
	Key  []byte   `json:"key"`
	Old  [][]byte `json:"old"` // the keys that go
	Used bool     `json:"used,omitempty"`
	Why  string   `json:"why"`
	From string   `json:"from"` // RFC 3339; for people
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
	// Announced are the nodes that hosts have created with the token and that have not
	// enrolled with it: at most Uses.
	Announced []string `json:"announced,omitempty"`
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
	// Ended: the node was deleted or banned, at that time (RFC 3339), and has no
	// keys. The record stays until Expires, so that a restored backup does not
	// bring the keys back.
	Ended string `json:"ended,omitempty"`
	// Generation orders the records of one node over a restored backup: the
	// greatest wins. 0 in records of before 0.2.
	Generation int64 `json:"generation,omitempty"`
}

// Ban is an operator's decision about a node id: banned, or no longer. The
// record stays, so that a restored backup brings no earlier decision back.
type Ban struct {
	Banned bool   `json:"banned"`
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"` // the administrator who asked
	At     string `json:"at"`           // RFC 3339
	// Enrolled: the node had a certificate, which the ban has ended.
	Enrolled bool `json:"enrolled,omitempty"`
	// Generation orders the decisions on one node: milliseconds of the wall clock,
	// or one more than the decision before, whichever is greater. The greatest
	// wins; of two equal ones the ban.
	Generation int64 `json:"generation"`
}

// Operator is one certificate of an operator.
type Operator struct {
	Name      string `json:"name"`
	Creator   string `json:"creator,omitempty"`
	Certified string `json:"certified"` // RFC 3339
	Expires   string `json:"expires"`   // RFC 3339
	// Revoked is when the certificate was revoked (RFC 3339), "" if it was not.
	Revoked   string `json:"revoked,omitempty"`
	RevokedBy string `json:"revokedBy,omitempty"`
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
	if t := r.Rotation; t != nil {
		at := slices.IndexFunc(r.Keys, func(k []byte) bool { return bytes.Equal(k, t.Key) })
		if at < 0 || (at == 0) != t.Used {
			return fmt.Errorf("rotation: its key is number %d of %d, used %t: want it among them, and the first exactly if it is used", at+1, len(r.Keys), t.Used)
		}
	}
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

func (r Ban) check() error {
	if r.At == "" || r.Generation < 1 {
		return fmt.Errorf("at %q, generation %d: want a time, and a generation of at least 1", r.At, r.Generation)
	}
	return nil
}

func (r Operator) check() error {
	if r.Name == "" || r.Expires == "" {
		return fmt.Errorf("operator %q until %q: want a name and an end", r.Name, r.Expires)
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
	switch n := len(r.Keys); {
	case r.Ended != "" && n != 0:
		return fmt.Errorf("keys: %d of a certificate that has ended, want none", n)
	case r.Ended == "" && (n < 1 || n > 2):
		return fmt.Errorf("keys: %d of them, want 1 or 2", n)
	}
	return nil
}

// BanOf is the ban of a node in the store's key, nil without a ban. An unreadable
// key counts as a ban.
func BanOf(kv KV) *Ban {
	if kv.ModRev == 0 {
		return nil
	}
	ban, err := Decode[Ban](kv.Key, kv.Value)
	switch {
	case err != nil:
		return &Ban{Banned: true, Reason: err.Error()}
	case !ban.Banned:
		return nil
	}
	return &ban
}
