package api

import (
	"time"

	"github.com/musterd/muster/api/internal/strict"
)

// The kinds of documents about who is who.
const (
	KindBootstrapToken      = "BootstrapToken"
	KindAuthority           = "Authority"
	KindOperatorCertificate = "OperatorCertificate"
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
	Request string `json:"request"` // PKCS #10 in PEM
}

// OperatorCertificateStatus is the certificate, in PEM.
type OperatorCertificateStatus struct {
	Chain       string `json:"chain,omitempty"`
	Authorities string `json:"authorities,omitempty"`
	Expires     string `json:"expires,omitempty"` // RFC 3339
}

var (
	bootstrapTokenDecoder      = strict.For[BootstrapToken]()
	operatorCertificateDecoder = strict.For[OperatorCertificate]()
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

// DecodeOperatorCertificate reads the wish for a certificate.
func DecodeOperatorCertificate(doc []byte) (*OperatorCertificate, *Status) {
	c, status := decode(operatorCertificateDecoder, doc)
	if status == nil {
		status = checkKind(c.APIVersion, c.Kind, KindOperatorCertificate)
	}
	switch {
	case status != nil:
		return nil, status
	case !IsLabel(c.Metadata.Name):
		return nil, invalid("metadata.name", "%q is not an RFC 1123 label (1..63 of a-z, 0-9 and '-')", c.Metadata.Name)
	case c.Spec.Request == "":
		return nil, invalid("spec.request", "empty: want a certificate request (PKCS #10 in PEM)")
	}
	return c, nil
}
