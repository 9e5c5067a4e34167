package api

import (
	"time"
	"unicode"

	"github.com/musterd/muster/api/internal/strict"
)

// The kinds of documents about who is who.
const (
	KindBootstrapToken      = "BootstrapToken"
	KindAuthority           = "Authority"
	KindOperatorCertificate = "OperatorCertificate"
	KindNodeBan             = "NodeBan"
)

// BootstrapToken lets hosts join the cluster.
type BootstrapToken struct {
	APIVersion string               `json:"apiVersion,omitempty"`
	Kind       string               `json:"kind,omitempty"`
	Metadata   ObjectMeta           `json:"metadata"` // the name is the token's id, drawn by the server
	Spec       BootstrapTokenSpec   `json:"spec"`
	Status     BootstrapTokenStatus `json:"status,omitzero"`
}

// BootstrapTokenSpec is whom a token lets in.
type BootstrapTokenSpec struct {
	// Nodes is the pattern of node ids: '*' stands for any characters, '?' for
	// one.
	Nodes string `json:"nodes"`
	// TTL is how long it is good for, "1h" if it is not given; at most 720h.
	TTL string `json:"ttl,omitempty"`
	// Uses is how many hosts it lets in, 1 if it is not given.
	Uses int `json:"uses,omitempty"`
	// Replace lets a host take the place of a node that exists, whose
	// certificate ends. It is for one node, by its id.
	Replace bool `json:"replace,omitempty"`
	// Labels are given to each node that the token lets in, as an operator's, at
	// its first registration.
	Labels map[string]string `json:"labels,omitempty"`
}

// BootstrapTokenStatus is what became of a token.
type BootstrapTokenStatus struct {
	// Token is the token itself. It is told once, in answer to its creation.
	Token   string `json:"token,omitempty"`
	Uses    int    `json:"uses"`              // left
	Expires string `json:"expires,omitempty"` // RFC 3339
	Expired bool   `json:"expired,omitempty"`
	Creator string `json:"creator,omitempty"`
}

// BootstrapTokenList is a list of tokens, oldest first.
type BootstrapTokenList struct {
	APIVersion string           `json:"apiVersion,omitempty"`
	Kind       string           `json:"kind,omitempty"`
	Items      []BootstrapToken `json:"items"`
}

// Authority is a root of trust. The name is its key's identifier.
type Authority struct {
	APIVersion string          `json:"apiVersion,omitempty"`
	Kind       string          `json:"kind,omitempty"`
	Metadata   ObjectMeta      `json:"metadata"`
	Status     AuthorityStatus `json:"status,omitzero"`
}

// AuthorityStatus is what is known of an authority.
type AuthorityStatus struct {
	Signs       bool   `json:"signs"`   // new certificates are by it
	Expires     string `json:"expires"` // RFC 3339
	Nodes       int    `json:"nodes"`   // that have a certificate by it
	Pin         string `json:"pin"`     // SHA-256 of its SubjectPublicKeyInfo, hex
	Certificate string `json:"certificate"`
}

// AuthorityList is a list of authorities, oldest first.
type AuthorityList struct {
	APIVersion string      `json:"apiVersion,omitempty"`
	Kind       string      `json:"kind,omitempty"`
	Items      []Authority `json:"items"`
}

// OperatorCertificate is an operator's identity for gRPC.
type OperatorCertificate struct {
	APIVersion string                    `json:"apiVersion,omitempty"`
	Kind       string                    `json:"kind,omitempty"`
	Metadata   ObjectMeta                `json:"metadata"` // the name is the operator's
	Spec       OperatorCertificateSpec   `json:"spec"`
	Status     OperatorCertificateStatus `json:"status,omitzero"`
}

// OperatorCertificateSpec asks for a certificate.
type OperatorCertificateSpec struct {
	Request string `json:"request,omitempty"` // PKCS #10 in PEM
	// TTL is how long the certificate is good for, "12h" if it is not given; 1m
	// to 720h.
	TTL string `json:"ttl,omitempty"`
}

// OperatorCertificateStatus is the certificate. The PEM texts are in the answer
// to its creation alone.
type OperatorCertificateStatus struct {
	Chain       string `json:"chain,omitempty"`       // PEM
	Authorities string `json:"authorities,omitempty"` // PEM
	Expires     string `json:"expires,omitempty"`     // RFC 3339
	Key         string `json:"key,omitempty"`         // SHA-256 of its public key, hex
	Creator     string `json:"creator,omitempty"`
	Revoked     string `json:"revoked,omitempty"` // RFC 3339; when it was revoked
	RevokedBy   string `json:"revokedBy,omitempty"`
}

// OperatorCertificateList is a list of certificates, by operator, oldest first.
type OperatorCertificateList struct {
	APIVersion string                `json:"apiVersion,omitempty"`
	Kind       string                `json:"kind,omitempty"`
	Items      []OperatorCertificate `json:"items"`
}

// NodeBan is an administrator's decision that a node id is kept out. The name is
// the node's.
type NodeBan struct {
	APIVersion string        `json:"apiVersion,omitempty"`
	Kind       string        `json:"kind,omitempty"`
	Metadata   ObjectMeta    `json:"metadata,omitzero"`
	Spec       NodeBanSpec   `json:"spec,omitzero"`
	Status     NodeBanStatus `json:"status,omitzero"`
}

// NodeBanSpec is why.
type NodeBanSpec struct {
	Reason string `json:"reason,omitempty"` // at most 512 bytes, one line
}

// NodeBanStatus is what became of a ban.
type NodeBanStatus struct {
	Banned bool   `json:"banned"`
	By     string `json:"by,omitempty"` // the administrator who asked
	// Enrolled: the node had a certificate, which the ban has ended.
	Enrolled bool `json:"enrolled,omitempty"`
}

// NodeBanList is a list of the bans that stand, by node.
type NodeBanList struct {
	APIVersion string    `json:"apiVersion,omitempty"`
	Kind       string    `json:"kind,omitempty"`
	Items      []NodeBan `json:"items"`
}

var (
	bootstrapTokenDecoder      = strict.For[BootstrapToken]()
	operatorCertificateDecoder = strict.For[OperatorCertificate]()
	nodeBanDecoder             = strict.For[NodeBan]()
)

// DecodeBootstrapToken reads the wish for a token and its TTL, 0 if none is
// given.
func DecodeBootstrapToken(doc []byte) (*BootstrapToken, time.Duration, *Status) {
	t, status := decode(bootstrapTokenDecoder, doc)
	if status == nil {
		status = checkKind(t.APIVersion, t.Kind, KindBootstrapToken)
	}
	if status != nil {
		return nil, 0, status
	}
	if t.Metadata.Name != "" {
		return nil, 0, invalid("metadata.name", "%q: the server names tokens", t.Metadata.Name)
	}
	if t.Spec.Nodes == "" {
		return nil, 0, invalid("spec.nodes", "empty: want a pattern of node ids, such as gpu-*")
	}
	if status := CheckNodeLabels("spec.labels", t.Spec.Labels); status != nil {
		return nil, 0, status
	}
	if t.Spec.TTL == "" {
		return t, 0, nil
	}
	ttl, err := time.ParseDuration(t.Spec.TTL)
	if err != nil || ttl <= 0 {
		return nil, 0, invalid("spec.ttl", `%q: want a time such as "1h" or "30m"`, t.Spec.TTL)
	}
	return t, ttl, nil
}

// maxBanReason bounds the reason of a ban, in bytes.
const maxBanReason = 512

// DecodeNodeBan reads the reason of a ban; an empty document gives none.
func DecodeNodeBan(doc []byte) (reason string, status *Status) {
	if len(doc) == 0 {
		return "", nil
	}
	b, status := decode(nodeBanDecoder, doc)
	if status == nil {
		status = checkKind(b.APIVersion, b.Kind, KindNodeBan)
	}
	if status != nil {
		return "", status
	}
	if n := len(b.Spec.Reason); n > maxBanReason {
		return "", invalid("spec.reason", "%d bytes, at most %d", n, maxBanReason)
	}
	for _, c := range b.Spec.Reason {
		if !unicode.IsPrint(c) {
			return "", invalid("spec.reason", "has the character %U: want one line of printable text", c)
		}
	}
	return b.Spec.Reason, nil
}

// DecodeOperatorCertificate reads the wish for a certificate and its TTL, 0 if
// none is given.
func DecodeOperatorCertificate(doc []byte) (*OperatorCertificate, time.Duration, *Status) {
	c, status := decode(operatorCertificateDecoder, doc)
	if status == nil {
		status = checkKind(c.APIVersion, c.Kind, KindOperatorCertificate)
	}
	switch {
	case status != nil:
		return nil, 0, status
	case !IsLabel(c.Metadata.Name):
		return nil, 0, invalid("metadata.name", "%q is not an RFC 1123 label (1..63 of a-z, 0-9 and '-')", c.Metadata.Name)
	case c.Spec.Request == "":
		return nil, 0, invalid("spec.request", "empty: want a certificate request (PKCS #10 in PEM)")
	case c.Spec.TTL == "":
		return c, 0, nil
	}
	ttl, err := time.ParseDuration(c.Spec.TTL)
	if err != nil || ttl <= 0 {
		return nil, 0, invalid("spec.ttl", `%q: want a time such as "12h" or "30m"`, c.Spec.TTL)
	}
	return c, ttl, nil
}
