package api

import (
	"encoding/json"
	"time"
	"unicode"

	"github.com/musterd/muster/api/internal/strict"
)

// The kinds of documents about identities.
const (
	KindBootstrapToken      = "BootstrapToken"
	KindAuthority           = "Authority"
	KindOperatorCertificate = "OperatorCertificate"
	KindNodeBan             = "NodeBan"
)

// BootstrapTokenPrefix begins the text of each bootstrap token.
const BootstrapTokenPrefix = "muster-boot."

// BootstrapToken lets hosts join the cluster. The server draws the name, which is
// the token's id.
type BootstrapToken struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is the kind of the document.
	Kind string `json:"kind,omitempty" default:"BootstrapToken" oneof:"BootstrapToken"`
	// Metadata has the name; leave the name out, since the server draws it.
	Metadata ObjectMeta `json:"metadata"`
	// Spec is the request for a token.
	Spec BootstrapTokenSpec `json:"spec"`
	// Status is the token and the state of its use, set by the server.
	Status BootstrapTokenStatus `json:"status,omitzero" by:"server"`
}

// BootstrapTokenSpec says which hosts a token lets in.
type BootstrapTokenSpec struct {
	// Nodes is a pattern of node ids: '*' stands for any characters, '?' for one
	// character.
	Nodes string `json:"nodes" required:"true" example:"gpu-*"`
	// TTL is the time that the token is valid for.
	TTL string `json:"ttl,omitempty" default:"1h" range:"1s..720h" format:"duration" example:"30m"`
	// Uses is the number of hosts that the token lets in.
	Uses int `json:"uses,omitempty" default:"1" range:"1..100000" unit:"hosts" example:"16"`
	// Replace lets a host take the place of a node that exists; the certificate of
	// that node ends. Such a token is for one node, named by its id.
	Replace bool `json:"replace,omitempty" default:"false" example:"false"`
	// Labels are given to each node that the token lets in, as an operator's labels,
	// at its first registration: at most 64, none of them reserved.
	Labels map[string]string `json:"labels,omitempty" example:"{pool: batch}"`
}

// BootstrapTokenStatus is a token and the state of its use.
type BootstrapTokenStatus struct {
	// Token is the token itself. The answer to its creation alone has it.
	Token string `json:"token,omitempty" example:"k3v9x2.0123456789abcdef0123456789abcdef"`
	// Uses is the number of hosts that the token still lets in.
	Uses int `json:"uses" unit:"hosts" example:"16"`
	// Expires is the time when the token ends.
	Expires string `json:"expires,omitempty" format:"time" example:"2026-03-01T13:00:00Z"`
	// Expired reports whether the token has ended.
	Expired bool `json:"expired,omitempty" example:"false"`
	// Creator is the name of the operator that asked for the token.
	Creator string `json:"creator,omitempty" example:"admin"`
}

// BootstrapTokenList is a list of tokens, oldest first.
type BootstrapTokenList struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is BootstrapTokenList.
	Kind string `json:"kind,omitempty" oneof:"BootstrapTokenList"`
	// Items are the tokens.
	Items []BootstrapToken `json:"items"`
}

// Authority is a certificate authority of the cluster. Its name is the identifier
// of its key.
type Authority struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is the kind of the document.
	Kind string `json:"kind,omitempty" default:"Authority" oneof:"Authority"`
	// Metadata names the authority.
	Metadata ObjectMeta `json:"metadata"`
	// Status is the state of the authority, set by the server.
	Status AuthorityStatus `json:"status,omitzero" by:"server"`
}

// AuthorityStatus is the state of an authority.
type AuthorityStatus struct {
	// Signs reports whether new certificates are signed by this authority.
	Signs bool `json:"signs" example:"true"`
	// Expires is the time when the authority's own certificate ends.
	Expires string `json:"expires" format:"time" example:"2036-03-01T12:00:00Z"`
	// Nodes is the number of nodes that have a certificate by this authority.
	Nodes int `json:"nodes" unit:"nodes" example:"40"`
	// Pin is the SHA-256 digest of the authority's SubjectPublicKeyInfo, in hex.
	Pin string `json:"pin" example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`
	// Certificate is the authority's certificate.
	Certificate string `json:"certificate" text:"lines" format:"PEM" example:"-----BEGIN CERTIFICATE-----…"`
}

// AuthorityList is a list of authorities, oldest first.
type AuthorityList struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is AuthorityList.
	Kind string `json:"kind,omitempty" oneof:"AuthorityList"`
	// Items are the authorities.
	Items []Authority `json:"items"`
}

// OperatorCertificate is an operator's identity for gRPC. Its name is the
// operator's.
type OperatorCertificate struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is the kind of the document.
	Kind string `json:"kind,omitempty" default:"OperatorCertificate" oneof:"OperatorCertificate"`
	// Metadata names the operator: an RFC 1123 label.
	Metadata ObjectMeta `json:"metadata"`
	// Spec is the request for a certificate.
	Spec OperatorCertificateSpec `json:"spec"`
	// Status is the certificate, set by the server.
	Status OperatorCertificateStatus `json:"status,omitzero" by:"server"`
}

// OperatorCertificateSpec is a request for a certificate.
type OperatorCertificateSpec struct {
	// Request is a certificate request (PKCS #10).
	Request string `json:"request,omitempty" text:"free" required:"true" format:"PEM" example:"-----BEGIN CERTIFICATE REQUEST-----…"`
	// TTL is the time that the certificate is valid for.
	TTL string `json:"ttl,omitempty" default:"12h" range:"1m..720h" format:"duration" example:"8h"`
}

// OperatorCertificateStatus is an operator's certificate. The answer to its
// creation alone has chain and authorities.
type OperatorCertificateStatus struct {
	// Chain is the certificate and its intermediate authorities.
	Chain string `json:"chain,omitempty" text:"lines" format:"PEM" example:"-----BEGIN CERTIFICATE-----…"`
	// Authorities are the certificates of the cluster's authorities.
	Authorities string `json:"authorities,omitempty" text:"lines" format:"PEM" example:"-----BEGIN CERTIFICATE-----…"`
	// Expires is the time when the certificate ends.
	Expires string `json:"expires,omitempty" format:"time" example:"2026-03-01T20:00:00Z"`
	// Key is the SHA-256 digest of the certificate's public key, in hex.
	Key string `json:"key,omitempty" example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`
	// Creator is the name of the operator that asked for the certificate.
	Creator string `json:"creator,omitempty" example:"admin"`
	// Revoked is the time when the certificate was revoked.
	Revoked string `json:"revoked,omitempty" format:"time" example:"2026-03-01T15:00:00Z"`
	// RevokedBy is the name of the operator that revoked the certificate.
	RevokedBy string `json:"revokedBy,omitempty" example:"admin"`
}

// OperatorCertificateList is a list of certificates, by operator, oldest first.
type OperatorCertificateList struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is OperatorCertificateList.
	Kind string `json:"kind,omitempty" oneof:"OperatorCertificateList"`
	// Items are the certificates.
	Items []OperatorCertificate `json:"items"`
}

// NodeBan keeps a node id out of the cluster. Its name is the node's id.
type NodeBan struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is the kind of the document.
	Kind string `json:"kind,omitempty" default:"NodeBan" oneof:"NodeBan"`
	// Metadata names the node.
	Metadata ObjectMeta `json:"metadata,omitzero"`
	// Spec has the reason of the ban.
	Spec NodeBanSpec `json:"spec,omitzero"`
	// Status is the effect of the ban, set by the server.
	Status NodeBanStatus `json:"status,omitzero" by:"server"`
}

// NodeBanSpec has the reason of a ban.
type NodeBanSpec struct {
	// Reason is kept for people: one line of at most 512 bytes.
	Reason string `json:"reason,omitempty" text:"lines" example:"stolen disk"`
}

// NodeBanStatus is the effect of a ban.
type NodeBanStatus struct {
	// Banned reports whether the ban stands.
	Banned bool `json:"banned" example:"true"`
	// By is the name of the operator that asked for the ban.
	By string `json:"by,omitempty" example:"admin"`
	// Enrolled reports whether the node had a certificate, which the ban has ended.
	Enrolled bool `json:"enrolled,omitempty" example:"true"`
}

// NodeBanList is a list of the bans that stand, by node.
type NodeBanList struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is NodeBanList.
	Kind string `json:"kind,omitempty" oneof:"NodeBanList"`
	// Items are the bans.
	Items []NodeBan `json:"items"`
}

var (
	bootstrapTokenDecoder      = strict.For[BootstrapToken]()
	operatorCertificateDecoder = strict.For[OperatorCertificate]()
	nodeBanDecoder             = strict.For[NodeBan]()
)

// DecodeBootstrapToken reads the wish for a token and its TTL, 0 if none is
// given.
func DecodeBootstrapToken(doc []byte) (*BootstrapToken, time.Duration, *Status) {
	t, status := decodeValid(bootstrapTokenDecoder, doc, func(t *BootstrapToken) *Status {
		var faults faults
		faults.add(checkKind(t.APIVersion, t.Kind, KindBootstrapToken))
		faults.add(namedByServer(t.Metadata, "spec.labels has the labels of the nodes"))
		if t.Spec.Nodes == "" {
			faults.add(invalid("spec.nodes", "empty: want a pattern of node ids, such as gpu-*"))
		}
		faults.add(checkUses(doc))
		faults.add(CheckNodeLabels("spec.labels", t.Spec.Labels))
		faults.add(statusOf(positive("spec.ttl", t.Spec.TTL, "1h")))
		return faults.status()
	})
	if status != nil {
		return nil, 0, status
	}
	ttl, status := positive("spec.ttl", t.Spec.TTL, "1h")
	return t, ttl, status
}

// namedByServer refuses a name, and metadata beside the name, for kinds that the server
// names and that keep none of it.
func namedByServer(m ObjectMeta, hint string) *Status {
	var faults faults
	if m.Name != "" {
		faults.add(invalid("metadata.name", "%q: the server names tokens, leave it out", clip(m.Name)))
	}
	faults.add(checkNameOnly(m, hint))
	return faults.status()
}

// positive reads a duration above 0; an empty text is 0.
func positive(path, text, example string) (time.Duration, *Status) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, invalid(path, `%q: want a time such as "%s" or "30m"`, clip(text), example)
	}
	return d, nil
}

// checkNameOnly refuses metadata beside the name, for kinds that keep none of it.
func checkNameOnly(m ObjectMeta, hint string) *Status {
	var faults faults
	if m.Namespace != "" {
		faults.add(invalid("metadata.namespace", "%q: objects of this kind have no namespace, leave it out", clip(m.Namespace)))
	}
	for _, k := range sortedKeys(m.Labels) {
		faults.add(invalid(key("metadata.labels", k), "%q: objects of this kind have no labels; %s", clip(m.Labels[k]), hint))
	}
	for _, k := range sortedKeys(m.Annotations) {
		faults.add(invalid(key("metadata.annotations", k), "%q: objects of this kind have no annotations, leave them out", clip(m.Annotations[k])))
	}
	return faults.status()
}

// maxTokenUses is the greatest number of hosts that one token lets in.
const maxTokenUses = 100_000

// checkUses refuses a number of hosts that is out of range. A 0 that is written is
// refused, since an absent field means 1.
func checkUses(doc []byte) *Status {
	var given struct {
		Spec struct {
			Uses *int64 `json:"uses"`
		} `json:"spec"`
	}
	_ = json.Unmarshal(doc, &given) // the document was decoded
	if n := given.Spec.Uses; n != nil && (*n < 1 || *n > maxTokenUses) {
		return invalid("spec.uses", "%d is outside 1..%d; leave it out for 1", *n, maxTokenUses)
	}
	return nil
}

// maxBanReason bounds the reason of a ban, in bytes.
const maxBanReason = 512

// DecodeNodeBan reads the reason of a ban of a node; an empty document gives none. A
// document for another node is refused with 422; node "" is any.
func DecodeNodeBan(node string, doc []byte) (reason string, status *Status) {
	b, status := decodeOptions(nodeBanDecoder, doc, func(b *NodeBan) *Status {
		var faults faults
		faults.add(checkKind(b.APIVersion, b.Kind, KindNodeBan))
		switch n := b.Metadata.Name; {
		case n != "" && !IsSubdomain(n):
			faults.add(invalid("metadata.name", "%q is not the name of a node: "+subdomainRule, clip(n), 253))
		case node != "" && n != "" && n != node:
			faults.add(invalid("metadata.name", "%q: the ban is for the node %q of the URL; give the same name, or none", clip(n), clip(node)))
		}
		faults.add(checkNameOnly(b.Metadata, "leave them out"))
		faults.add(checkBanReason(b.Spec.Reason))
		return faults.status()
	})
	return b.Spec.Reason, status
}

// checkBanReason refuses a reason that is not one printable line.
func checkBanReason(reason string) *Status {
	if n := len(reason); n > maxBanReason {
		return invalid("spec.reason", "%d bytes, at most %d", n, maxBanReason)
	}
	for _, c := range reason {
		if !unicode.IsPrint(c) {
			return invalid("spec.reason", "has the character %U: want one line of printable text", c)
		}
	}
	return nil
}

// DecodeOperatorCertificate reads the wish for a certificate and its TTL, 0 if
// none is given.
func DecodeOperatorCertificate(doc []byte) (*OperatorCertificate, time.Duration, *Status) {
	c, status := decodeValid(operatorCertificateDecoder, doc, func(c *OperatorCertificate) *Status {
		var faults faults
		faults.add(checkKind(c.APIVersion, c.Kind, KindOperatorCertificate))
		faults.add(checkNameOnly(c.Metadata, "leave them out"))
		if !IsLabel(c.Metadata.Name) {
			faults.add(invalid("metadata.name", "%q is not an RFC 1123 label (1..63 of a-z, 0-9 and '-')", clip(c.Metadata.Name)))
		}
		if c.Spec.Request == "" {
			faults.add(invalid("spec.request", "empty: want a certificate request (PKCS #10 in PEM)"))
		}
		faults.add(statusOf(positive("spec.ttl", c.Spec.TTL, "12h")))
		return faults.status()
	})
	if status != nil {
		return nil, 0, status
	}
	ttl, status := positive("spec.ttl", c.Spec.TTL, "12h")
	return c, ttl, status
}
