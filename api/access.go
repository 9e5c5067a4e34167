package api

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/api/internal/strict"
)

// The kinds of documents about rights to the API.
const (
	KindAccessToken   = "AccessToken"
	KindRoleBinding   = "RoleBinding"
	KindRotateOptions = "RotateOptions"
)

// The roles that documents name. The table of rights in docs/reference/roles.md says
// exactly which verb of which kind each role may use.
const (
	RoleViewer      = "viewer"       // reads
	RoleEditor      = "editor"       // reads, and submits, changes and ends work
	RoleTenantAdmin = "tenant-admin" // an editor who gives the rights of the tenant to others
	RoleOperator    = "operator"     // runs the machines; in the whole cluster
	RoleAdmin       = "admin"        // everything; in the whole cluster
)

// AccessToken lets a person or a program use the API. The server draws the name,
// which is the id of the token.
type AccessToken struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is the kind of the document.
	Kind string `json:"kind,omitempty" default:"AccessToken" oneof:"AccessToken"`
	// Metadata has the name; leave the name out, since the server draws it.
	Metadata ObjectMeta `json:"metadata"`
	// Spec is the request for a token.
	Spec AccessTokenSpec `json:"spec"`
	// Status is the token and the state of its use, set by the server.
	Status AccessTokenStatus `json:"status,omitzero" by:"server"`
}

// AccessTokenSpec says who uses a token, and with which rights.
type AccessTokenSpec struct {
	// User is the person or the program that uses the token: one line of at most 256
	// bytes. Records and logs have it. Not a role, not the path of a file, and not a name
	// that begins with system:, oidc: or node:, in any case of letters.
	User string `json:"user" required:"true" example:"ada@example.org"`
	// Role is the role of the token. A token without a role has the roles that role
	// bindings give to its user.
	Role string `json:"role,omitempty" oneof:"viewer,editor,tenant-admin,operator,admin" example:"editor"`
	// Tenant is the tenant in whose namespaces the role counts. Absent: the whole
	// cluster. A tenant-admin has a tenant; an operator or an admin has none.
	Tenant string `json:"tenant,omitempty" example:"vision"`
	// Namespaces limit the role to these namespaces, while they belong to the tenant:
	// at most 64. Absent: all namespaces of the tenant.
	Namespaces []string `json:"namespaces,omitempty" example:"[vision-dev]"`
	// PriorityCeiling is the greatest priority of work that the token submits, 0 to
	// 1000000000. Absent: no ceiling beside that of the namespace.
	PriorityCeiling *int32 `json:"priorityCeiling,omitempty" example:"1000"`
	// TTL is the time that the token is valid for. Absent: the token does not end.
	TTL string `json:"ttl,omitempty" range:"1s..87600h" format:"duration" example:"720h"`
	// Description is for people: one line of at most 256 bytes.
	Description string `json:"description,omitempty" example:"nightly training"`
	// Request is a certificate request (PKCS #10). With a request the token is a client
	// certificate for the key of the request, and has no secret. Its user gets the prefix
	// cert:, and its ttl is 720h where absent. Answers do not have the request.
	Request string `json:"request,omitempty" text:"free" format:"PEM" example:"-----BEGIN CERTIFICATE REQUEST-----…"`
}

// AccessTokenStatus is a token and the state of its use.
type AccessTokenStatus struct {
	// Token is the token itself. The answers to its creation and to its rotation alone
	// have it.
	Token string `json:"token,omitempty" example:"muster.at-5d1f09c2ab.k3v9x2mqp7zt4hw6c8ydbnfgr5s1aeju"`
	// Secrets is the number of secrets that are valid: 2 for a while after a rotation.
	Secrets int `json:"secrets" example:"1"`
	// Rotated is the time of the last rotation.
	Rotated string `json:"rotated,omitempty" format:"time" example:"2026-03-01T12:00:00Z"`
	// OverlapEnds is the time when the secret before the last rotation ends.
	OverlapEnds string `json:"overlapEnds,omitempty" format:"time" example:"2026-03-02T12:00:00Z"`
	// Expires is the time when the token ends; absent for never.
	Expires string `json:"expires,omitempty" format:"time" example:"2026-03-31T12:00:00Z"`
	// Expired reports whether the token has ended.
	Expired bool `json:"expired,omitempty" example:"false"`
	// Creator is the name of the person that asked for the token.
	Creator string `json:"creator,omitempty" example:"admin"`
	// Serial is the serial number of the client certificate, in hex; absent for a token
	// with a secret.
	Serial string `json:"serial,omitempty" example:"5d1f09c2ab8e4f7a91c3d2b06e5a7f81"`
	// Chain is the client certificate and its intermediate authorities. The answer to
	// its creation alone has chain and authorities.
	Chain string `json:"chain,omitempty" text:"lines" format:"PEM" example:"-----BEGIN CERTIFICATE-----…"`
	// Authorities are the certificates of the cluster's authorities.
	Authorities string `json:"authorities,omitempty" text:"lines" format:"PEM" example:"-----BEGIN CERTIFICATE-----…"`
	// NotFollowedBy are the coordinators that did not confirm the change within 5 s.
	// The answer to a change alone has them.
	NotFollowedBy []string `json:"notFollowedBy,omitempty" example:"[coordinator-3]"`
}

// AccessTokenList is a list of tokens, ordered by name.
type AccessTokenList struct {
	// Kind is AccessTokenList.
	Kind string `json:"kind" oneof:"AccessTokenList"`
	// Metadata has the revision and the token of the next page.
	Metadata ListMeta `json:"metadata"`
	// Items are the tokens.
	Items []AccessToken `json:"items"`
}

// RotateOptions is the body of a request for a new secret of a token.
type RotateOptions struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is the kind of the document.
	Kind string `json:"kind,omitempty" default:"RotateOptions" oneof:"RotateOptions"`
	// Overlap is the time for which the secret before goes on to be valid. With 0s that
	// secret ends at once.
	Overlap string `json:"overlap,omitempty" default:"24h" range:"0s..720h" format:"duration" example:"1h"`
}

// RoleBinding gives a role to users, groups and tokens. It is in no namespace.
type RoleBinding struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is the kind of the document.
	Kind string `json:"kind" default:"RoleBinding" oneof:"RoleBinding"`
	// Metadata names the binding.
	Metadata ObjectMeta `json:"metadata"`
	// Spec is the role and the users and tokens that get the role.
	Spec RoleBindingSpec `json:"spec"`
}

// RoleBindingSpec is a role, the place where the role counts, and the users, the groups
// and the tokens that get the role.
type RoleBindingSpec struct {
	// Role is the role that the binding gives.
	Role string `json:"role" required:"true" oneof:"viewer,editor,tenant-admin,operator,admin" example:"editor"`
	// Tenant is as in an AccessToken.
	Tenant string `json:"tenant,omitempty" example:"vision"`
	// Namespaces are as in an AccessToken.
	Namespaces []string `json:"namespaces,omitempty" example:"[vision-dev]"`
	// Subjects get the role: at most 256.
	Subjects []Subject `json:"subjects" required:"true"`
}

// Subject is somebody who gets a role.
type Subject struct {
	// Kind is User for a person or a program by name, Group for a group of the identity
	// provider, and Token for one access token.
	Kind string `json:"kind" required:"true" oneof:"User,Group,Token" example:"User"`
	// Name is the name of the user, the name of the group or the id of the token.
	Name string `json:"name" required:"true" example:"ada@example.org"`
}

// The kinds of subjects.
const (
	SubjectUser  = "User"
	SubjectGroup = "Group"
	SubjectToken = "Token"
)

// RoleBindingList is a list of role bindings, ordered by name.
type RoleBindingList struct {
	// Kind is RoleBindingList.
	Kind string `json:"kind" oneof:"RoleBindingList"`
	// Metadata has the revision and the token of the next page.
	Metadata ListMeta `json:"metadata"`
	// Items are the bindings.
	Items []RoleBinding `json:"items"`
}

// The bounds of grants.
const (
	MaxGrantNamespaces = 64
	MaxSubjects        = 256
	MaxTokenTTL        = 10 * 365 * 24 * time.Hour
	// DefaultCertificateTTL is that of client certificates.
	DefaultCertificateTTL = 30 * 24 * time.Hour
	MaxOverlap            = 30 * 24 * time.Hour
	DefaultOverlap        = 24 * time.Hour
)

var (
	accessTokenDecoder   = strict.For[AccessToken]()
	roleBindingDecoder   = strict.For[RoleBinding]()
	rotateOptionsDecoder = strict.For[RotateOptions]()
)

// DecodeAccessToken reads the request for a token and its TTL, 0 for a token that
// does not end.
func DecodeAccessToken(doc []byte) (*AccessToken, time.Duration, *Status) {
	t, status := decodeValid(accessTokenDecoder, doc, func(t *AccessToken) *Status {
		return allFaults(checkKind(t.APIVersion, t.Kind, KindAccessToken), namedByServer(t.Metadata, "spec.description is for people"), t.Spec.Validate())
	})
	if status != nil {
		return nil, 0, status
	}
	ttl, status := t.Spec.lifetime()
	return t, ttl, status
}

// CertificatePrefix begins the name of each user who has a client certificate, and of no
// other user.
const CertificatePrefix = "cert:"

// requestBegins is the first line of a certificate request in PEM.
const requestBegins = "-----BEGIN CERTIFICATE REQUEST-----"

// lifetime is the time that the token is valid for; 0 is a token that does not end.
func (s *AccessTokenSpec) lifetime() (time.Duration, *Status) {
	absent := time.Duration(0)
	if s.Request != "" {
		absent = DefaultCertificateTTL
	}
	return between("spec.ttl", s.TTL, absent, time.Second, MaxTokenTTL)
}

// Owner is the name of the user: that of a client certificate begins with
// CertificatePrefix.
func (s *AccessTokenSpec) Owner() string {
	if s.Request == "" {
		return s.User
	}
	return CertificatePrefix + strings.TrimPrefix(s.User, CertificatePrefix)
}

// reservedPrefixes begin names that are not for tokens: those of the system, of the
// identity provider and of hosts.
var reservedPrefixes = []string{"system:", "oidc:", "node:"}

// checkReserved refuses a name that records and the audit would show as if another
// had acted: the bearer of the administrator's token, a role, a file, a person of the
// identity provider, or a part of the system.
func (s *AccessTokenSpec) checkReserved() *Status {
	name := strings.ToLower(strings.TrimSpace(strings.TrimPrefix(s.User, CertificatePrefix)))
	path := strings.HasPrefix(name, "/") || strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") || strings.HasPrefix(name, "~")
	prefixed := slices.ContainsFunc(reservedPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
	role := slices.Contains([]string{RoleViewer, RoleEditor, RoleTenantAdmin, RoleOperator, RoleAdmin, "node"}, name)
	if !path && !prefixed && !role {
		return nil
	}
	return invalid("spec.user", "%q is reserved: want a name that is not a role (viewer, editor, tenant-admin, operator, admin, node), does not begin with system:, oidc: or node:, and is not the path of a file (/, ./, ../, ~)", clip(s.User))
}

// checkProof refuses an unreadable request, and a name without the needed request.
func (s *AccessTokenSpec) checkProof() *Status {
	name, certified := strings.CutPrefix(s.User, CertificatePrefix)
	switch {
	case s.Request != "" && !strings.HasPrefix(s.Request, requestBegins):
		return invalid("spec.request", "%q: want a certificate request (PKCS #10) in PEM, which begins with %s", clip(s.Request), requestBegins)
	case certified && s.Request == "":
		return invalid("spec.user", "%q: names that begin with %s are those of client certificates: choose another name, or give spec.request", clip(s.User), CertificatePrefix)
	case certified && strings.TrimSpace(name) == "":
		return invalid("spec.user", "%q: no name after %s", clip(s.User), CertificatePrefix)
	}
	return nil
}

// Validate refuses a token of nobody, and a role at a place where it cannot count.
func (s *AccessTokenSpec) Validate() *Status {
	var faults faults
	faults.add(checkUser("spec.user", s.User))
	switch {
	case s.Role != "":
		faults.add(checkGrant(s.Role, s.Tenant, s.Namespaces))
	case s.Tenant != "" || len(s.Namespaces) > 0:
		faults.add(invalid("spec.role", "empty, with a tenant or namespaces: name the role that counts there, or leave all of them out for the bindings of the user"))
	}
	if c := s.PriorityCeiling; c != nil && (*c < 0 || *c > MaxPriority) {
		faults.add(invalid("spec.priorityCeiling", "%d is outside 0..%d", *c, MaxPriority))
	}
	faults.add(checkLine("spec.description", s.Description))
	faults.add(s.checkReserved())
	faults.add(s.checkProof())
	faults.add(statusOf(s.lifetime()))
	return faults.status()
}

// DecodeRotateOptions reads the options of a rotation; an empty document has the
// default.
func DecodeRotateOptions(doc []byte) (overlap time.Duration, status *Status) {
	o, status := decodeOptions(rotateOptionsDecoder, doc, func(o *RotateOptions) *Status {
		return allFaults(checkKind(o.APIVersion, o.Kind, KindRotateOptions), statusOf(between("overlap", o.Overlap, DefaultOverlap, 0, MaxOverlap)))
	})
	if status != nil {
		return 0, status
	}
	return between("overlap", o.Overlap, DefaultOverlap, 0, MaxOverlap)
}

// DecodeRoleBinding reads and validates a role binding as DecodeResourceQuota does a
// resource quota.
func DecodeRoleBinding(doc []byte) (*RoleBinding, *Status) {
	return decodeValid(roleBindingDecoder, doc, func(b *RoleBinding) *Status {
		status := b.Metadata.settable(&b.APIVersion, &b.Kind, KindRoleBinding)
		return allFaults(status, b.Validate())
	})
}

// Validate refuses a binding of a role that there is not, of a role at a place where
// it cannot count, and of nobody.
func (b *RoleBinding) Validate() *Status {
	var faults faults
	switch m := b.Metadata; {
	case m.Name == "":
		faults.add(invalid("metadata.name", "required: "+subdomainRule, 253))
	case !IsSubdomain(m.Name):
		faults.add(invalid("metadata.name", "%q is not the name of a role binding: "+subdomainRule, clip(m.Name), 253))
	}
	faults.add(checkCluster(b.Metadata))
	faults.add(checkGrant(b.Spec.Role, b.Spec.Tenant, b.Spec.Namespaces))
	if len(b.Spec.Subjects) == 0 {
		faults.add(invalid("spec.subjects", "empty: name the users or the tokens that get the role"))
	}
	faults.add(atMost("spec.subjects", len(b.Spec.Subjects), MaxSubjects))
	for i, s := range b.Spec.Subjects {
		faults.add(s.check(fmt.Sprintf("spec.subjects[%d]", i)))
	}
	return faults.status()
}

// check refuses a subject of a kind that there is not, and a name that no subject has.
func (s Subject) check(path string) *Status {
	var faults faults
	if !slices.Contains([]string{SubjectUser, SubjectGroup, SubjectToken}, s.Kind) {
		faults.add(invalid(path+".kind", "%q: want %s, %s or %s", clip(s.Kind), SubjectUser, SubjectGroup, SubjectToken))
	}
	if s.Kind == SubjectToken && !IsSubdomain(s.Name) {
		faults.add(invalid(path+".name", "%q is not the id of an access token, as muster token list shows it", clip(s.Name)))
	} else {
		faults.add(checkUser(path+".name", s.Name))
	}
	return faults.status()
}

// checkUser refuses a name that no user has.
func checkUser(path, name string) *Status {
	if strings.TrimSpace(name) == "" {
		return invalid(path, "required: the name of a person or a program, such as ada@example.org")
	}
	return checkLine(path, name)
}

// checkGrant refuses a role that there is not, and a place where it cannot count.
func checkGrant(role, tenant string, namespaces []string) *Status {
	var faults faults
	cluster := role == RoleOperator || role == RoleAdmin
	if !slices.Contains([]string{RoleViewer, RoleEditor, RoleTenantAdmin, RoleOperator, RoleAdmin}, role) {
		faults.add(invalid("spec.role", "%q: want viewer, editor, tenant-admin, operator or admin", clip(role)))
	}
	switch {
	case cluster && tenant != "":
		faults.add(invalid("spec.tenant", "%q: the role %s counts in the whole cluster, leave the tenant out", clip(tenant), role))
	case role == RoleTenantAdmin && tenant == "":
		faults.add(invalid("spec.tenant", "required: the tenant whose rights the tenant-admin gives"))
	case tenant == "" && len(namespaces) > 0:
		faults.add(invalid("spec.tenant", "required with spec.namespaces: the tenant that owns them"))
	case tenant != "" && !IsLabel(tenant):
		faults.add(invalid("spec.tenant", "%q is not the name of a tenant: %s", clip(tenant), labelRule))
	}
	faults.add(atMost("spec.namespaces", len(namespaces), MaxGrantNamespaces))
	for i, n := range namespaces {
		if !IsLabel(n) {
			faults.add(invalid(fmt.Sprintf("spec.namespaces[%d]", i), "%q is not the name of a namespace: %s", clip(n), labelRule))
		}
	}
	return faults.status()
}

// between reads a duration within bounds; an empty text is absent.
func between(path, text string, absent, least, most time.Duration) (time.Duration, *Status) {
	if text == "" {
		return absent, nil
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, invalid(path, `%q: want a time such as "1h" or "30m"`, clip(text))
	case d < least || d > most:
		return 0, invalid(path, "%q is outside %s..%s", clip(text), least, most)
	}
	return d, nil
}
